/* SPDX-License-Identifier: MIT
 *
 * gemma2 (Gemma Team 2024, arXiv:2408.00118) and the text model of gemma3 (2025, arXiv:2503.19786):
 * norms before and after each sub-layer, whose weights are added to 1; embeddings times sqrt(D);
 * windows in some layers. gemma2 caps scores and logits, gemma3 norms queries and keys and has
 * another base of rotation in layers with a window. */
#include "llama.h"

/* clang-format off */
static const struct tensor_row tensors[] = {
    {.ours = "layers.*.ln1", .published = "layers.*.input_layernorm", .plus_one = true},
    {.ours = "layers.*.ln1_out", .published = "layers.*.post_attention_layernorm", .plus_one = true},
    {.ours = "layers.*.ln2", .published = "layers.*.pre_feedforward_layernorm", .plus_one = true},
    {.ours = "layers.*.ln2_out", .published = "layers.*.post_feedforward_layernorm", .plus_one = true},
    {.ours = "layers.*.attn.q_norm", .published = "layers.*.self_attn.q_norm", .plus_one = true},
    {.ours = "layers.*.attn.k_norm", .published = "layers.*.self_attn.k_norm", .plus_one = true},
    LLAMA_FEED_FORWARD,
    {.ours = "final_ln", .published = "norm", .plus_one = true},
    LLAMA_REST,
    {0},
};
/* clang-format on */

static const struct key_row keys[] = {
    LLAMA_KEYS(1e-6, 1), {"attention_bias", "attn_bias", KEY_FLAG, 0, 0, 1}, {0}};

static const struct act_name acts[] = {
    {"gelu_pytorch_tanh", "geglu_tanh"},
    {"gelu_new", "geglu_tanh"},
    {"gelu", "geglu"},
    {"silu", "swiglu"},
    {0},
};

enum { KV_HEADS = 4, HEAD = 256, WINDOW = 4096, SCALAR = 256 };

/* Its program reads hidden_activation and sliding_window, and not these, which files have besides. */
static void put_doubles(struct config_json *j)
{
    const int window = config_json_whole(j, "sliding_window", WINDOW, 1, MAX_DISTANCE);

    config_json_at(j, "hidden_act");
    if (config_json_whole(j, "sliding_window_size", window, 1, MAX_DISTANCE) != window)
        import_refuse(j, "sliding_window_size and another sliding_window  -> use one of them");
}

/* Returns the width of a head. */
static int put_gemma(struct config_json *j, const char *variant, bool *full, int period)
{
    const int head = import_put_heads(j, variant, KV_HEADS, HEAD);
    const int window = config_json_whole(j, "sliding_window", WINDOW, 1, MAX_DISTANCE);
    const int width = config_json_whole(j, "hidden_size", REQUIRED, 1, MAX_WIDTH);
    const double scalar = config_json_real(j, "query_pre_attn_scalar", SCALAR, 1e-6, MAX_WIDTH);

    SAY(j, {"norm", "peri"}, {"ff_bias", "0"});
    config_json_put(j, "emb_scale", "%.9g", sqrt(width));
    config_json_put(j, "scale", "%.9g", 1 / sqrt(scalar));
    put_doubles(j);
    import_put_ffn(j, "hidden_activation", "gelu_pytorch_tanh", acts);
    import_put_layer_types(j, window, period, full);
    return head;
}

/* A cap, where null is none. */
static void put_cap(struct config_json *j, const char *published, const char *ours, double absent)
{
    const bool off = json_is_null(json_object_get(j->root, published));

    config_json_put(j, ours, "%.9g",
                    off ? 0 : config_json_real(j, published, absent, 1e-6, 1 << 20));
    config_json_at(j, published);
}

static void gemma2(struct config_json *j)
{
    bool full[MAX_LAYERS] = {false};

    import_put_rotary(j, &llama_rotary, put_gemma(j, "gemma", full, 2));
    put_cap(j, "attn_logit_softcapping", "soft_cap", 50);
    put_cap(j, "final_logit_softcapping", "logit_cap", 30);
}

static void gemma3(struct config_json *j)
{
    enum { USUAL_PERIOD = 6 };
    static const struct rotary_kinds rotary = {.base = "rope_theta",
                                               .window_base = "rope_local_base_freq",
                                               .usual = 1e6,
                                               .usual_window = 1e4};
    bool full[MAX_LAYERS] = {false};
    const int said = config_json_whole(j, "_sliding_window_pattern", USUAL_PERIOD, 1, MAX_LAYERS);
    const int period = config_json_whole(j, "sliding_window_pattern", said, 1, MAX_LAYERS);

    import_put_rotary_kinds(j, &rotary, full, put_gemma(j, "gemma3", full, period));
    config_json_at(j, "attn_logit_softcapping"); /* which its program does not apply */
    put_cap(j, "final_logit_softcapping", "logit_cap", 0);
    config_json_put(j, "qk_norm", "1");
    config_json_put(j, "head_eps", "%.9g", config_json_real(j, "rms_norm_eps", 1e-6, 0, 1));
}

/* Published files of gemma3 lack some. */
USUAL_SIZES(2304, 9216, 26, 8, 262208);

LLAMA_TYPE(gemma2, .usual_context = 8192, .keys = keys, .tensors = tensors, .more = gemma2);
LLAMA_TYPE(gemma3_text, .usual_context = 131072, .usual = usual_sizes, .keys = keys,
           .tensors = tensors, .more = gemma3);
