/* SPDX-License-Identifier: MIT
 *
 * lfm2 (Liquid AI 2025, arXiv:2511.23404): layers of gated short convolutions, and of attention with
 * normed queries and keys. */
#include "llama.h"

#define CONV(name, in) .ours = "layers.*.attn." name, .published = "layers.*.conv." in, .of = RECURS
#define IN(name, nth)                                                                              \
    {                                                                                              \
        CONV(name, "in_proj"), .part = nth, .parts = 3                                             \
    }

static const struct tensor_row tensors[] = {
    {.ours = "layers.*.ln1", .published = "layers.*.operator_norm"},
    {.ours = "layers.*.ln2", .published = "layers.*.ffn_norm"},
    IN("b", 0),
    IN("c", 1),
    IN("x", 2),
    {CONV("conv", "conv"), .taps = true},
    {CONV("o", "out_proj")},
    {.ours = "layers.*.attn.o", .published = "layers.*.self_attn.out_proj"},
    {.ours = "layers.*.attn.q_norm", .published = "layers.*.self_attn.q_layernorm"},
    {.ours = "layers.*.attn.k_norm", .published = "layers.*.self_attn.k_layernorm"},
    {.ours = "layers.*.ff.g", .published = "layers.*.feed_forward.w1"},
    {.ours = "layers.*.ff.1", .published = "layers.*.feed_forward.w3"},
    {.ours = "layers.*.ff.2", .published = "layers.*.feed_forward.w2"},
    {.ours = "final_ln", .published = "embedding_norm"},
    LLAMA_REST,
    {0},
};

static const struct key_row keys[] = {
    LLAMA_SIZES(1),
    {"norm_eps", "ln_eps", KEY_REAL, 1e-5, 0, 1},
    {"norm_eps", "head_eps", KEY_REAL, 1e-5, 0, 1},
    {"conv_L_cache", "short_taps", KEY_WHOLE, 3, 1, 256},
    {"conv_bias", "short_bias", KEY_FLAG, 0, 0, 1},
    {0},
};
USUAL_SIZES(2560, 12288, 32, 32, 65536);

static const struct rotary rotary = {.usual_base = 1e6, .whole = true};

/* The key, or an older one, which wins. Two thirds of it, times a number, rounded up to a multiple,
 * unless the file says the width itself. */
static void put_inner(struct config_json *j)
{
    const char *const key =
        config_json_at(j, "block_ff_dim") ? "block_ff_dim" : "intermediate_size";
    const int said = config_json_whole(j, key, REQUIRED, 1, 4 * MAX_WIDTH);
    const double times = config_json_real(j, "block_ffn_dim_multiplier", 1, 1e-6, 1 << 10);
    const int of = config_json_whole(j, "block_multiple_of", 256, 1, MAX_WIDTH);
    const bool adjusts = config_json_flag(j, "block_auto_adjust_ff_dim", true);
    const double inner = floor(times * floor(2.0 * said / 3)); /* no int has all of them */

    SKIP(j, "intermediate_size");
    config_json_put(j, "d_inner", "%.0f", adjusts ? ceil(inner / of) * of : said);
}

/* Other names of what the files say besides, which its program does not read. */
static void check_twins(struct config_json *j)
{
    static const char *const twins[][2] = {
        {"block_dim", "hidden_size"},    {"conv_dim", "hidden_size"},
        {"conv_dim_out", "hidden_size"}, {"num_heads", "num_attention_heads"},
        {"block_norm_eps", "norm_eps"},  {"theta", "rope_theta"},
    };

    for (size_t i = 0; i < ARRAY_LEN(twins); i++) {
        const json_t *const one = config_json_at(j, twins[i][0]);
        const json_t *const other = json_object_get(j->root, twins[i][1]);
        if (one && other && json_number_value(one) != json_number_value(other))
            import_refuse(j, "%s and another %s  -> use one of them", twins[i][0], twins[i][1]);
    }
    import_need_flag(j, "block_use_swiglu", true);
    import_need_flag(j, "use_pos_enc", true);
}

/* An older spelling of which layers attend. */
static void take_indices(struct config_json *j)
{
    const int layers = config_json_whole(j, "num_hidden_layers", REQUIRED, 1, MAX_LAYERS);
    const json_t *const list = config_json_at(j, "full_attn_idxs"), *one;
    size_t i;

    if (list && !json_is_array(list))
        config_json_refuse(j, "full_attn_idxs is not a list  -> use a published config");
    if (!list || config_json_at(j, "layer_types"))
        return;
    json_t *const types = json_array();
    for (int l = 0; l < layers; l++) {
        bool attends = false;
        json_array_foreach(list, i, one) attends = attends || json_integer_value(one) == l;
        json_array_append_new(types, json_string(attends ? "full_attention" : "conv"));
    }
    json_object_set_new(j->root, "layer_types", types);
}

static void more(struct config_json *j)
{
    enum { KV_HEADS = 8 };

    check_twins(j);
    take_indices(j);
    if (config_json_at(j, "tie_embedding")) /* likewise */
        config_json_put(j, "tied", "%d", config_json_flag(j, "tie_embedding", true));
    import_put_rotary(j, &rotary, import_put_heads(j, "lfm2", KV_HEADS, 0));
    import_put_stack(j, "shortconv", "conv", 1);
    put_inner(j);
    SAY(j, {"mixer", "shortconv"}, {"norm", "pre"}, {"ffn", "swiglu"}, {"attn_bias", "0"},
        {"ff_bias", "0"}, {"qk_norm", "1"});
}

LLAMA_TYPE(lfm2, .usual_context = 128000, .usual = usual_sizes, ROWS_OF_FILE);
