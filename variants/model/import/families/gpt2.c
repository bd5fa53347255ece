/* SPDX-License-Identifier: MIT
 *
 * gpt2: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners". Learned
 * positions, norms first, biases everywhere; maps are published transposed, [in,out], and those of
 * queries, keys and values side by side. */
#include "variants/model/import/model_type.h"

#define QKV(name, nth)                                                                             \
    {                                                                                              \
        .ours = "layers.*.attn." name, .published = "h.*.attn.c_attn", .layout = LAYOUT_COLUMNS,   \
        .part = nth, .parts = 3                                                                    \
    }

static const struct tensor_row tensors[] = {
    {.ours = "embed", .published = "wte"},
    {.ours = "pos", .published = "wpe"},
    {.ours = "layers.*.ln1", .published = "h.*.ln_1"},
    QKV("q", 0),
    QKV("k", 1),
    QKV("v", 2),
    {.ours = "layers.*.attn.o", .published = "h.*.attn.c_proj", .layout = LAYOUT_COLUMNS},
    {.ours = "layers.*.ln2", .published = "h.*.ln_2"},
    {.ours = "layers.*.ff.1", .published = "h.*.mlp.c_fc", .layout = LAYOUT_COLUMNS},
    {.ours = "layers.*.ff.2", .published = "h.*.mlp.c_proj", .layout = LAYOUT_COLUMNS},
    {.ours = "final_ln", .published = "ln_f"},
    {.ours = "out", .published = "lm_head", .bare = true, .tie = TIE_WORDS, .with = "wte"},
    {0},
};

static const struct alias aliases[] = {
    {"n_embd", "hidden_size"},
    {"n_head", "num_attention_heads"},
    {"n_layer", "num_hidden_layers"},
    {"n_positions", "max_position_embeddings"},
    {0},
};

static const struct key_row keys[] = {
    {"n_embd", "d_model", KEY_WHOLE, 768, 1, MAX_WIDTH},
    {"n_head", "n_head", KEY_WHOLE, 12, 1, MAX_WIDTH},
    {"n_layer", "n_layer", KEY_WHOLE, 12, 1, MAX_LAYERS},
    {"vocab_size", "vocab", KEY_WHOLE, 50257, 1, MAX_WIDTH},
    {"layer_norm_epsilon", "ln_eps", KEY_REAL, 1e-5, 0, 1},
    {"tie_word_embeddings", "tied", KEY_FLAG, 1, 0, 1},
    {"scale_attn_by_inverse_layer_idx", "depth_scale", KEY_FLAG, 0, 0, 1},
    {0},
};

static void more(struct config_json *j)
{
    const int D = config_json_whole(j, "n_embd", 768, 1, MAX_WIDTH);
    const int H = config_json_whole(j, "n_head", 12, 1, MAX_WIDTH);
    const int places = config_json_whole(
        j, "n_positions", config_json_whole(j, "n_ctx", 1024, 1, 1 << 24), 1, 1 << 24);
    const int F = config_json_at(j, "n_inner")
                      ? config_json_whole(j, "n_inner", REQUIRED, 1, 4 * MAX_WIDTH)
                      : 4 * D;
    const int dh = D / H;

    if (D % H)
        import_refuse(j, "n_head %d of n_embd %d  -> use a divisor", H, D);
    import_put_common(j, "learned");
    SAY(j, {"pos", "learned"}, {"scheme", "none"});
    config_json_put(j, "max_pos", "%d", places);
    config_json_put(j, "d_head", "%d", dh);
    config_json_put(j, "d_inner", "%d", F);
    SAY(j, {"norm", "pre"}, {"norm_kind", "layer"}, {"attn_bias", "1"}, {"ff_bias", "1"});
    config_json_put(j, "scale", "%.9g",
                    config_json_flag(j, "scale_attn_weights", true) ? 1 / sqrt(dh) : 1);
    import_put_ffn(j, "activation_function", "gelu_new", plain_acts);
}

const struct model_type model_type_gpt2 = {
    .name = "gpt2",
    .prefix = "transformer.",
    .embedding = "wte.weight",
    .layers = "n_layer",
    .context = "n_positions",
    .usual_context = 1024,
    .aliases = aliases,
    ROWS_OF_FILE,
};
