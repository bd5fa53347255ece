/* SPDX-License-Identifier: MIT
 *
 * smollm3 (Hugging Face 2025): llama, some of whose layers do not rotate queries and keys; these
 * may see a window. */
#include "llama.h"

USUAL_SIZES(2048, 11008, 36, 16, 128256);

static const struct rotary rotary = {.usual_base = 2e6, .whole = true};

/* still[l]: layer l does not rotate. */
static void read_still(struct config_json *j, bool *still)
{
    const json_t *const list = config_json_at(j, "no_rope_layers"); /* 0 = it does not */
    const int layers = config_json_whole(j, "num_hidden_layers", REQUIRED, 1, MAX_LAYERS);
    const int period = config_json_whole(j, "no_rope_layer_interval", 4, 1, MAX_LAYERS);

    if (list && json_array_size(list) != (size_t)layers)
        config_json_refuse(j, "no_rope_layers has %zu, num_hidden_layers is %d  -> give as many",
                           json_array_size(list), layers);
    for (int l = 0; l < layers; l++)
        still[l] =
            list ? json_integer_value(json_array_get(list, (size_t)l)) == 0 : (l + 1) % period == 0;
}

static void more(struct config_json *j)
{
    enum { KV_HEADS = 4 };
    bool still[MAX_LAYERS] = {false}, full[MAX_LAYERS] = {false};

    read_still(j, still);
    SKIP(j, "max_window_layers", "sliding_window");
    const bool windows =
        config_json_flag(j, "use_sliding_window", false) && config_json_at(j, "sliding_window");
    const int window = config_json_whole(j, windows ? "sliding_window" : "", 0, 1, MAX_DISTANCE);
    if (!windows)
        import_check_layer_types(j, "full_attention");
    else if (config_json_at(j, "layer_types"))
        import_put_layer_types(j, window, 1, full);
    else /* of those that do not rotate */
        import_put_by_layer(j, "layer_windows", still, 0, window);
    const int head = import_put_heads(j, "llama", KV_HEADS, 0);
    import_put_by_layer(j, "layer_rope_base", still, import_put_rotary(j, &rotary, head), 0);
    config_json_put(j, "norm", "pre");
    import_put_ffn(j, "hidden_act", "silu", llama_acts);
}

LLAMA_TYPE(smollm3, .usual_context = 32768, .usual = usual_sizes, .keys = llama_keys,
           .tensors = llama_tensors, .more = more);
