/* SPDX-License-Identifier: MIT
 *
 * cohere2 (Cohere 2024, Command R7B; Cohere Team 2025, arXiv:2504.00698): attention and feed-forward
 * read the same norm, without a bias, side by side. Layers that see a window have rotated positions,
 * those that see all have none. */
#include "llama.h"

static const struct tensor_row tensors[] = {
    LLAMA_FEED_FORWARD,
    LLAMA_REST,
    {0},
};

static const struct key_row keys[] = {
    LLAMA_SIZES(1),
    {"intermediate_size", "d_inner", KEY_WHOLE, REQUIRED, 1, 4 * MAX_WIDTH},
    {"layer_norm_eps", "ln_eps", KEY_REAL, 1e-5, 0, 1},
    {"logit_scale", "logit_scale", KEY_REAL, 0.0625, 0, 1 << 20},
    {"attention_bias", "attn_bias", KEY_FLAG, 0, 0, 1},
    {0},
};
USUAL_SIZES(8192, 22528, 40, 64, 256000);

static const struct rotary rotary = {.share = "rotary_pct", .whole = true};

/* What its program does whatever they say. */
static void check_idle(struct config_json *j, int period)
{
    import_need_flag(j, "use_gated_activation", true);
    import_need_flag(j, "use_parallel_block", true);
    import_need_flag(j, "use_embedding_sharing", true);
    import_need_word(j, "position_embedding_type", "rope_gptj");
    import_need_word(j, "order_of_interleaved_layers", "local_attn_first");
    SKIP(j, "use_parallel_embedding");
    if (config_json_whole(j, "layer_switch", period, 1, MAX_LAYERS) != period)
        import_refuse(j, "layer_switch and another sliding_window_pattern  -> use one of them");
}

static void more(struct config_json *j)
{
    enum { WINDOW = 4096, PERIOD = 4 };
    const int head = import_put_heads(j, "llama", 0, 0);
    const int window = config_json_whole(j, "sliding_window", WINDOW, 1, MAX_DISTANCE);
    const int said = config_json_whole(j, "_sliding_window_pattern", PERIOD, 1, MAX_LAYERS);
    const int period = config_json_whole(j, "sliding_window_pattern", said, 1, MAX_LAYERS);
    bool full[MAX_LAYERS] = {false};

    check_idle(j, period);
    import_put_layer_types(j, window, period, full);
    import_put_by_layer(j, "layer_rope_base", full, import_put_rotary(j, &rotary, head), 0);
    SAY(j, {"norm", "parallel"}, {"one_norm", "1"}, {"norm_kind", "layer"}, {"ln_bias", "0"},
        {"ff_bias", "0"}, {"rope_pairs", "interleaved"});
    import_put_ffn(j, "hidden_act", "silu", llama_acts);
}

LLAMA_TYPE(cohere2, .usual_context = 8192, .usual = usual_sizes, ROWS_OF_FILE);
