/* SPDX-License-Identifier: MIT
 *
 * Models of flash-linear-attention: layers of a linear recurrence and a gated feed-forward network,
 * with norms before both. gla (Yang et al. 2023, arXiv:2312.06635) reads its decays by a low-rank
 * map; gated_deltanet (Yang et al. 2024, arXiv:2412.06464) is the gated delta rule behind a
 * convolution of queries, keys and values each. */
#include "fla.h"
#include "variants/steps/mix.h"

/* ---- tensors ------------------------------------------------------------------------------ */

#define BLOCK                                                                                      \
    {.ours = "embed", .published = "embeddings"},                                                  \
        {.ours = "layers.*.ln1", .published = "layers.*.attn_norm"},                               \
        {.ours = "layers.*.ln2", .published = "layers.*.mlp_norm"}, {ATTENTION("q", "q_proj")},    \
        {ATTENTION("k", "k_proj")}, {ATTENTION("v", "v_proj")}, {ATTENTION("g", "g_proj")},        \
        {ATTENTION("o", "o_proj")}, LLAMA_FEED_FORWARD, {.ours = "final_ln", .published = "norm"}, \
    {                                                                                              \
        .ours = "out", .published = "lm_head", .bare = true, .tie = TIE_WORDS,                     \
        .with = "embeddings"                                                                       \
    }

/* Rows of queries, keys and values in our convolution. */
static int64_t rows_before(const struct config *c, int part)
{
    const struct mix *const m = config_numbers(c, SLOT_MIXER);
    const int64_t keys = (int64_t)(m->key_heads ? m->key_heads : c->H) * c->dh;

    return (const int64_t[]){0, keys, 2 * keys, 2 * keys + (int64_t)c->H * config_dv(c)}[part];
}

#define CONV(nth, in)                                                                              \
    {                                                                                              \
        ATTENTION("conv", in), .layout = LAYOUT_JOIN, .part = nth, .parts = 3,                     \
                               .before = rows_before, .taps = true                                 \
    }

static const struct tensor_row gated_deltanet_tensors[] = {
    BLOCK,
    CONV(0, "q_conv1d"),
    CONV(1, "k_conv1d"),
    CONV(2, "v_conv1d"),
    {ATTENTION("beta", "b_proj")},
    {ATTENTION("dt", "a_proj")},
    {ATTENTION("dt_bias", "dt_bias")},
    {ATTENTION("A_log", "A_log")},
    {ATTENTION("norm", "o_norm")},
    {0},
};

/* The norm has another name where it is not computed together with the gate. */
static const struct tensor_row gla_tensors[] = {
    BLOCK,
    {ATTENTION("gk.1", "gk_proj.0")},
    {ATTENTION("gk.2", "gk_proj.1")},
    {ATTENTION("norm", "g_norm_swish_gate"), .if_there = true},
    {ATTENTION("norm", "g_norm")},
    {0},
};

/* ---- keys --------------------------------------------------------------------------------- */

#define KEYS(width, layers)                                                                        \
    {"hidden_size", "d_model", KEY_WHOLE, width, 1, MAX_WIDTH},                                    \
        {"num_hidden_layers", "n_layer", KEY_WHOLE, layers, 1, MAX_LAYERS},                        \
        {"vocab_size", "vocab", KEY_WHOLE, 32000, 1, MAX_WIDTH},                                   \
        {"norm_eps", "ln_eps", KEY_REAL, 1e-6, 0, 1},                                              \
        {"norm_eps", "head_eps", KEY_REAL, 1e-6, 0, 1},                                            \
    {                                                                                              \
        "tie_word_embeddings", "tied", KEY_FLAG, 0, 0, 1                                           \
    }

static const struct key_row gated_deltanet_keys[] = {KEYS(2048, 21), {0}};
static const struct key_row gla_keys[] = {KEYS(2048, 24), {0}};

int fla_width(struct config_json *j, const char *key, int absent)
{
    return config_json_at(j, key) ? config_json_whole(j, key, absent, 1, MAX_WIDTH) : absent;
}

/* A whole number that the file gives as a multiple of another. */
static int times(struct config_json *j, const char *key, double usual, int of)
{
    const double x = of * config_json_real(j, key, usual, 1e-6, 1 << 10);

    if (fabs(x - round(x)) > 1e-5 * x)
        import_refuse(j, "%s %g: %g times %d is not a whole number  -> use a multiple", key, x / of,
                      x / of, of);
    return (int)round(x);
}

void fla_put_inner(struct config_json *j, int width, bool gated)
{
    const int step = gated ? 256 : 32;
    const double ratio = config_json_at(j, "hidden_ratio")
                             ? config_json_real(j, "hidden_ratio", 4, 1e-6, 1 << 10)
                             : 4;
    const int wide = (int)(gated ? width * ratio * 2 / 3 : width * ratio);

    config_json_put(j, "d_inner", "%d",
                    fla_width(j, "intermediate_size", (wide + step - 1) / step * step));
}

void fla_check_idle(struct config_json *j)
{
    if (config_json_at(j, "attn"))
        import_refuse(j, "attn: layers of attention, not supported  -> use a model without");
    SKIP(j, "attn_mode", "fuse_norm", "fuse_swiglu", "fuse_cross_entropy", "use_l2warp",
         "fuse_linear_cross_entropy", "initializer_range");
}

/* What both are, with heads of this many keys and values. */
static void put_block(struct config_json *j, const char *variant, int heads, int keys, int values)
{
    import_need_word(j, "hidden_act", "swish");
    fla_check_idle(j);
    import_put_common(j, variant);
    config_json_put(j, "mixer", "%s", variant);
    config_json_put(j, "n_head", "%d", heads);
    config_json_put(j, "kv_heads", "%d", heads);
    config_json_put(j, "d_head", "%d", keys);
    config_json_put(j, "d_value", "%d", values);
    config_json_put(j, "scale", "%.9g", 1 / sqrt(keys));
    SAY(j, {"norm", "pre"}, {"norm_kind", "rms"}, {"ffn", "swiglu"}, {"ff_bias", "0"});
}

static void put_gate(struct config_json *j, const char *key)
{
    config_json_put(j, "out_gate", "%s", config_json_flag(j, key, true) ? "swish" : "none");
}

/* ---- gated_deltanet ----------------------------------------------------------------------- */

static void gated_deltanet(struct config_json *j)
{
    enum { HEADS = 6, HEAD = 256, TAPS = 4 };
    const int width = config_json_whole(j, "hidden_size", 2048, 1, MAX_WIDTH);
    const int keys = config_json_whole(j, "head_dim", HEAD, 1, MAX_WIDTH);
    const int of_keys = config_json_whole(j, "num_heads", HEADS, 1, MAX_WIDTH);
    const int heads = fla_width(j, "num_v_heads", of_keys);
    const int taps = config_json_whole(j, "conv_size", TAPS, 1, 256);

    if (heads % of_keys)
        import_refuse(j, "num_heads %d of num_v_heads %d  -> use a divisor", of_keys, heads);
    put_block(j, "gdn", heads, keys, times(j, "expand_v", 2, keys));
    fla_put_inner(j, width, true);
    put_gate(j, "use_gate");
    if (heads != of_keys)
        config_json_put(j, "key_heads", "%d", of_keys);
    config_json_put(j, "conv_width", "%d", config_json_flag(j, "use_short_conv", true) ? taps : 0);
    config_json_put(j, "beta_max", "%d", config_json_flag(j, "allow_neg_eigval", false) ? 2 : 1);
}

/* ---- gla ---------------------------------------------------------------------------------- */

static void refuse_of_gla(struct config_json *j, int heads)
{
    static const char *const without[] = {"feature_map", "clamp_min"};

    for (size_t i = 0; i < ARRAY_LEN(without); i++)
        if (config_json_at(j, without[i]))
            import_refuse(j, "%s: not supported  -> use a model without", without[i]);
    import_need_flag(j, "use_short_conv", false);
    import_need_flag(j, "elementwise_affine", true);
    if (fla_width(j, "num_kv_heads", heads) != heads)
        import_refuse(j, "num_kv_heads %d of %d heads: not supported  -> use as many",
                      fla_width(j, "num_kv_heads", heads), heads);
    SKIP(j, "conv_size", "share_conv_kernel");
    SKIP(j, "use_gk", "use_gv"); /* its program reads neither */
}

/* Of all heads, to that of one. */
static int share(struct config_json *j, const char *key, int all, int heads)
{
    if (all % heads)
        import_refuse(j, "%s: %d columns of %d heads  -> use a multiple", key, all, heads);
    return all / heads;
}

static void gla(struct config_json *j)
{
    enum { HEADS = 4, RANK = 16 }; /* of the map of decays, which no key says */
    const int width = config_json_whole(j, "hidden_size", 2048, 1, MAX_WIDTH);
    const int heads = config_json_whole(j, "num_heads", HEADS, 1, MAX_WIDTH);
    const double of_keys = config_json_real(j, "expand_k", 0.5, 1e-6, 1 << 10);
    const double of_values = config_json_real(j, "expand_v", 1, 1e-6, 1 << 10);

    refuse_of_gla(j, heads);
    const int keys = share(j, "expand_k", (int)(width * of_keys), heads);
    put_block(j, "gla", heads, keys, share(j, "expand_v", (int)(width * of_values), heads));
    fla_put_inner(j, width, true);
    put_gate(j, "use_output_gate");
    config_json_put(j, "lora", "%d", RANK);
    config_json_put(j, "gate_tau", "16");
}

const struct model_type model_type_gated_deltanet = {.name = "gated_deltanet",
                                                     FLA_FAMILY,
                                                     .keys = gated_deltanet_keys,
                                                     .tensors = gated_deltanet_tensors,
                                                     .more = gated_deltanet};
const struct model_type model_type_gla = {
    .name = "gla", FLA_FAMILY, .keys = gla_keys, .tensors = gla_tensors, .more = gla};
