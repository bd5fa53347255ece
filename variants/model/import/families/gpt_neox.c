/* SPDX-License-Identifier: MIT
 *
 * gpt_neox: Black et al. 2022, "GPT-NeoX-20B", arXiv:2204.06745; Pythia: Biderman et al. 2023,
 * arXiv:2304.01373. Rotary positions on a part of each head, attention and feed-forward side by
 * side; maps of queries, keys and values alternate head by head. */
#include "variants/model/import/model_type.h"

#define QKV(name, nth)                                                                             \
    {                                                                                              \
        .ours = "layers.*.attn." name, .published = "layers.*.attention.query_key_value",          \
        .layout = LAYOUT_HEADS, .part = nth, .parts = 3                                            \
    }

static const struct tensor_row tensors[] = {
    {.ours = "embed", .published = "embed_in"},
    {.ours = "layers.*.ln1", .published = "layers.*.input_layernorm"},
    {.ours = "layers.*.ln2", .published = "layers.*.post_attention_layernorm"},
    QKV("q", 0),
    QKV("k", 1),
    QKV("v", 2),
    {.ours = "layers.*.attn.o", .published = "layers.*.attention.dense"},
    {.ours = "layers.*.ff.1", .published = "layers.*.mlp.dense_h_to_4h"},
    {.ours = "layers.*.ff.2", .published = "layers.*.mlp.dense_4h_to_h"},
    {.ours = "final_ln", .published = "final_layer_norm"},
    {.ours = "out", .published = "embed_out", .bare = true, .tie = TIE_WORDS, .with = "embed_in"},
    {0},
};

static const struct key_row keys[] = {
    {"hidden_size", "d_model", KEY_WHOLE, 6144, 1, MAX_WIDTH},
    {"num_attention_heads", "n_head", KEY_WHOLE, 64, 1, MAX_WIDTH},
    {"num_hidden_layers", "n_layer", KEY_WHOLE, 44, 1, MAX_LAYERS},
    {"intermediate_size", "d_inner", KEY_WHOLE, 24576, 1, 4 * MAX_WIDTH},
    {"vocab_size", "vocab", KEY_WHOLE, 50432, 1, MAX_WIDTH},
    {"layer_norm_eps", "ln_eps", KEY_REAL, 1e-5, 0, 1},
    {"attention_bias", "attn_bias", KEY_FLAG, 1, 0, 1},
    {"tie_word_embeddings", "tied", KEY_FLAG, 0, 0, 1},
    {0},
};

static const struct rotary rotary = {
    .base = "rotary_emb_base", .share = "rotary_pct", .usual_share = 0.25};

static void more(struct config_json *j)
{
    const int D = config_json_whole(j, "hidden_size", 6144, 1, MAX_WIDTH);
    const int H = config_json_whole(j, "num_attention_heads", 64, 1, MAX_WIDTH);
    const int dh = D / H;

    if (D % H)
        import_refuse(j, "num_attention_heads %d of hidden_size %d  -> use a divisor", H, D);
    if (config_json_at(j, "head_dim") && config_json_whole(j, "head_dim", dh, 1, MAX_WIDTH) != dh)
        import_refuse(j, "head_dim other than hidden_size of a head  -> use %d", dh);
    import_put_common(j, "rope");
    config_json_put(j, "d_head", "%d", dh);
    config_json_put(j, "norm", "%s",
                    config_json_flag(j, "use_parallel_residual", true) ? "parallel" : "pre");
    SAY(j, {"norm_kind", "layer"}, {"ff_bias", "1"});
    import_put_rotary(j, &rotary, dh);
    import_put_ffn(j, "hidden_act", "gelu", plain_acts);
}

const struct model_type model_type_gpt_neox = {
    .name = "gpt_neox",
    .prefix = "gpt_neox.",
    .embedding = "embed_in.weight",
    .layers = "num_hidden_layers",
    .context = "max_position_embeddings",
    .usual_context = 2048,
    ROWS_OF_FILE,
};
