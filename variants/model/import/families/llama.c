/* SPDX-License-Identifier: MIT
 *
 * llama, and what is nearly the same: mistral (Jiang et al. 2023, arXiv:2310.06825) with a window,
 * qwen2 (Yang et al. 2024, arXiv:2407.10671) with biases of queries, keys and values, qwen3 (2025,
 * arXiv:2505.09388) with normed queries and keys, olmo2 (OLMo Team 2025, arXiv:2501.00656), which norms
 * these over all heads of a row, and the output of each sub-layer in place of its input; granite
 * (Granite Team 2024) with factors. */
#include "llama.h"

/* clang-format off */
const struct tensor_row llama_tensors[] = {
    {.ours = "layers.*.ln1_out", .published = "layers.*.post_attention_layernorm"}, /* of olmo2 */
    {.ours = "layers.*.ln2_out", .published = "layers.*.post_feedforward_layernorm"},
    QK_NORMS,
    LLAMA_FEED_FORWARD,
    LLAMA_REST,
    {0},
};
/* clang-format on */

#define KEYS LLAMA_KEYS(1e-6, 0)
const struct key_row llama_keys[] = {
    KEYS,
    {"attention_bias", "attn_bias", KEY_FLAG, 0, 0, 1},
    {"mlp_bias", "ff_bias", KEY_FLAG, 0, 0, 1},
    {0},
};
static const struct key_row qwen3_keys[] = {
    KEYS,
    {"attention_bias", "attn_bias", KEY_FLAG, 0, 0, 1},
    {0},
};
static const struct key_row olmo2_keys[] = {
    LLAMA_KEYS(1e-5, 0), {"attention_bias", "attn_bias", KEY_FLAG, 0, 0, 1}, {0}};
static const struct key_row plain_keys[] = {KEYS, {0}};

const struct act_name llama_acts[] = {
    {"silu", "swiglu"}, {"gelu", "geglu"}, {"swish", "swiglu"}, {0}};

const struct rotary llama_rotary = {.whole = true};

/* One kind of attention in all layers. */
void import_check_layer_types(struct config_json *j, const char *wanted)
{
    const json_t *const types = config_json_at(j, "layer_types");
    const json_t *type;
    size_t i;

    const size_t layers =
        (size_t)config_json_whole(j, "num_hidden_layers", REQUIRED, 1, MAX_LAYERS);

    if (types && !json_is_array(types))
        config_json_refuse(j, "layer_types is not a list  -> use a published config");
    if (types && json_array_size(types) != layers)
        config_json_refuse(j, "layer_types has %zu, num_hidden_layers is %zu  -> give as many",
                           json_array_size(types), layers);
    json_array_foreach(types, i, type) if (!json_is_string(type) ||
                                           strcmp(json_string_value(type), wanted) != 0)
        import_refuse(j,
                      "layer_types of two kinds or another: not supported  -> use %s in all, "
                      "windows in some (sliding_attention) are not",
                      wanted);
}

/* Which layers see all, as the file says, or by a period; the others are what `other` says. */
static void read_layer_types(struct config_json *j, const char *other, int layers, int period,
                             bool *full)
{
    const json_t *const types = config_json_at(j, "layer_types");

    if (types && json_array_size(types) != (size_t)layers)
        config_json_refuse(j, "layer_types has %zu, num_hidden_layers is %d  -> give as many",
                           json_array_size(types), layers);
    for (int l = 0; l < layers; l++) {
        const char *const word = json_string_value(json_array_get(types, (size_t)l));
        full[l] = types ? word && strcmp(word, "full_attention") == 0 : (l + 1) % period == 0;
        if (types && !full[l] && !(word && strcmp(word, other) == 0))
            import_refuse(j, "layer_types %.40s: not supported  -> use full_attention and %s",
                          word ? word : "that are not words", other);
    }
}

/* The length of the shortest list that repeats, up to `most`. */
static int period_of(struct config_json *j, const bool *full, int most)
{
    const int layers = config_json_whole(j, "num_hidden_layers", REQUIRED, 1, MAX_LAYERS);

    for (int n = 1; n <= min_int(layers, most); n++) {
        int l = n;
        while (l < layers && full[l] == full[l - n])
            l++;
        if (l == layers)
            return n;
    }
    import_refuse(j,
                  "layer_types that do not repeat within %d layers: not supported  -> use a model "
                  "whose kinds of layers alternate",
                  most);
    return 0;
}

void import_put_by_layer(struct config_json *j, const char *key, const bool *full, double of_window,
                         double of_full)
{
    const int period = period_of(j, full, MAX_LAYER_LIST);
    char text[MAX_LAYER_LIST * 32] = "";

    for (int l = 0; l < period; l++)
        text_item(text, sizeof(text), "%.9g", full[l] ? of_full : of_window);
    config_json_put(j, key, "%s", text);
}

void import_put_layer_types(struct config_json *j, int window, int period, bool *full)
{
    const int layers = config_json_whole(j, "num_hidden_layers", REQUIRED, 1, MAX_LAYERS);

    read_layer_types(j, "sliding_attention", layers, period, full);
    import_put_by_layer(j, "layer_windows", full, window, 0);
}

void import_put_stack(struct config_json *j, const char *mixer, const char *word, int period)
{
    const int layers = config_json_whole(j, "num_hidden_layers", REQUIRED, 1, MAX_LAYERS);
    bool full[MAX_LAYERS] = {false};
    char text[MAX_STACK * 16] = "";

    read_layer_types(j, word, layers, period, full);
    const int n = period_of(j, full, MAX_STACK);
    for (int l = 0; l < n; l++)
        text_item(text, sizeof(text), "%s", full[l] ? "rope" : mixer);
    config_json_put(j, "layer_mixers", "%s", text);
}

/* A count that null means, too, by what stands for null; REQUIRED = null is none. */
static int whole_or_null(struct config_json *j, const char *key, int absent, int null)
{
    const json_t *const said = json_object_get(j->root, key);

    return null != REQUIRED && json_is_null(said) && !config_json_at(j, key)
               ? null
               : config_json_whole(j, key, absent, 1, MAX_WIDTH);
}

int import_put_heads(struct config_json *j, const char *variant, int kv_absent, int head_absent)
{
    const int D = config_json_whole(j, "hidden_size", REQUIRED, 1, MAX_WIDTH);
    const int H = config_json_whole(j, "num_attention_heads", REQUIRED, 1, MAX_WIDTH);
    const int kv = whole_or_null(j, "num_key_value_heads", kv_absent ? kv_absent : H, H);
    const int dh = head_absent ? whole_or_null(j, "head_dim", head_absent, REQUIRED)
                               : whole_or_null(j, "head_dim", D / max_int(1, H), D / max_int(1, H));

    if (!config_json_at(j, "head_dim") && !head_absent && D % H)
        import_refuse(
            j, "num_attention_heads %d of hidden_size %d  -> use a divisor, or a head_dim", H, D);
    if (kv < 1 || H % kv)
        import_refuse(j, "num_key_value_heads %d of %d heads  -> use a divisor", kv, H);
    if (dh % 2)
        import_refuse(j, "head_dim %d: coordinates are rotated in pairs  -> use an even number",
                      dh);
    import_put_common(j, variant);
    config_json_put(j, "d_head", "%d", dh);
    config_json_put(j, "kv_heads", "%d", kv);
    config_json_put(j, "norm_kind", "rms");
    config_json_put(j, "scale", "%.9g", 1 / sqrt(dh));
    return dh;
}

/* All of a model that differs from llama in nothing else. */
static void import_put_llama(struct config_json *j, const char *variant, int kv_absent,
                             int head_absent)
{
    import_put_rotary(j, &llama_rotary, import_put_heads(j, variant, kv_absent, head_absent));
    config_json_put(j, "norm", "pre");
    import_put_ffn(j, "hidden_act", "silu", llama_acts);
}

static void llama(struct config_json *j)
{
    import_put_llama(j, "llama", 0, 0);
    import_check_layer_types(j, "full_attention");
}

/* Absent is the publisher's window, null is none. */
static void mistral(struct config_json *j)
{
    enum { KV_HEADS = 8, WINDOW = 4096 };
    const json_t *const said = config_json_at(j, "sliding_window");
    const bool off = !said && json_object_get(j->root, "sliding_window");

    import_put_llama(j, "llama", KV_HEADS, 0);
    if (json_is_integer(said) && json_integer_value(said) == 0)
        import_refuse(j, "sliding_window 0  -> use null or 1 or more");
    const int window = off ? 0 : config_json_whole(j, "sliding_window", WINDOW, 1, MAX_DISTANCE);
    config_json_put(j, "window", "%d", window);
    SAY(j, {"attn_bias", "0"}, {"ff_bias", "0"});
    import_check_layer_types(j, window ? "sliding_attention" : "full_attention");
}

void import_put_window(struct config_json *j)
{
    if (config_json_at(j, "sliding_window"))
        config_json_put(j, "window", "%d",
                        config_json_whole(j, "sliding_window", REQUIRED, 1, MAX_DISTANCE));
}

/* Without the switch, the window and the layers that would have it say nothing. */
void import_refuse_some_windows(struct config_json *j)
{
    SKIP(j, "sliding_window", "max_window_layers");
    if (config_json_flag(j, "use_sliding_window", false))
        import_refuse(j, "use_sliding_window: windows in some layers only are not supported "
                         "(sliding_window)  -> use a model without");
    import_check_layer_types(j, "full_attention");
}

static void qwen2(struct config_json *j)
{
    import_refuse_some_windows(j);
    import_put_llama(j, "llama", REQUIRED, 0);
    SAY(j, {"attn_bias", "qkv"}, {"ff_bias", "0"});
}

static void qwen3(struct config_json *j)
{
    enum { HEAD = 128 };

    import_refuse_some_windows(j);
    import_put_llama(j, "qknorm", REQUIRED, HEAD);
    SAY(j, {"ff_bias", "0"}, {"qk_norm", "1"});
    config_json_put(j, "head_eps", "%.9g", config_json_real(j, "rms_norm_eps", 1e-6, 0, 1));
}

static void olmo2(struct config_json *j)
{
    import_put_llama(j, "qknorm", 0, 0);
    import_check_layer_types(j, "full_attention");
    SAY(j, {"norm", "res_post"}, {"ff_bias", "0"}, {"qk_norm", "1"}, {"qk_norm_over", "row"});
    config_json_put(j, "head_eps", "%.9g", config_json_real(j, "rms_norm_eps", 1e-5, 0, 1));
}

void import_put_factors(struct config_json *j)
{
    enum { MOST = 1 << 20 };

    config_json_put(j, "emb_scale", "%.9g",
                    config_json_real(j, "embedding_multiplier", 1, 0, MOST));
    config_json_put(j, "res_scale", "%.9g", config_json_real(j, "residual_multiplier", 1, 0, MOST));
    config_json_put(j, "scale", "%.9g", config_json_real(j, "attention_multiplier", 1, 0, MOST));
    config_json_put(j, "logit_scale", "%.9g",
                    1 / config_json_real(j, "logits_scaling", 1, 1e-6, MOST));
}

static void granite(struct config_json *j)
{
    import_put_llama(j, "llama", 0, 0);
    import_put_factors(j);
}

LLAMA_TYPE(llama, .usual_context = 2048, .keys = llama_keys, .tensors = llama_tensors,
           .more = llama);
USUAL_SIZES(4096, 11008, 32, 32, 32000);
LLAMA_TYPE(granite, .usual_context = 2048, .usual = usual_sizes, .keys = llama_keys,
           .tensors = llama_tensors, .more = granite);
LLAMA_TYPE(mistral, .usual_context = 131072, .keys = plain_keys, .tensors = llama_tensors,
           .more = mistral);
LLAMA_TYPE(qwen2, .usual_context = 32768, .keys = plain_keys, .tensors = llama_tensors,
           .more = qwen2);
LLAMA_TYPE(qwen3, .usual_context = 32768, .keys = qwen3_keys, .tensors = llama_tensors,
           .more = qwen3);
LLAMA_TYPE(olmo2, .usual_context = 2048, .keys = olmo2_keys, .tensors = llama_tensors,
           .more = olmo2);
