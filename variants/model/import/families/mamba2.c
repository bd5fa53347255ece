/* SPDX-License-Identifier: MIT
 *
 * mamba2 (Dao and Gu 2024, arXiv:2405.21060): layers of one sub-layer, a recurrence. */
#include "llama.h"

#define MIXER(name, in)                                                                            \
    {                                                                                              \
        .ours = "layers.*.attn." name, .published = "layers.*.mixer." in                           \
    }

static const struct tensor_row tensors[] = {
    {.ours = "embed", .published = "embeddings"},
    {.ours = "layers.*.ln1", .published = "layers.*.norm"},
    MIXER("in", "in_proj"),
    {.ours = "layers.*.attn.conv", .published = "layers.*.mixer.conv1d", .taps = true},
    MIXER("dt_bias", "dt_bias"),
    {.ours = "layers.*.attn.A_log", .published = "layers.*.mixer.A_log", .log = true},
    MIXER("D", "D"),
    MIXER("norm", "norm"),
    MIXER("o", "out_proj"),
    {.ours = "final_ln", .published = "norm_f"},
    {.ours = "out", .published = "lm_head", .bare = true, .tie = TIE_WORDS, .with = "embeddings"},
    {0},
};

static const struct key_row keys[] = {
    {"hidden_size", "d_model", KEY_WHOLE, 4096, 1, MAX_WIDTH},
    {"num_hidden_layers", "n_layer", KEY_WHOLE, 64, 1, MAX_LAYERS},
    {"num_heads", "n_head", KEY_WHOLE, 128, 1, MAX_WIDTH},
    {"num_heads", "kv_heads", KEY_WHOLE, 128, 1, MAX_WIDTH},
    {"state_size", "d_head", KEY_WHOLE, 128, 1, MAX_WIDTH},
    {"head_dim", "d_value", KEY_WHOLE, 64, 1, MAX_WIDTH},
    {"n_groups", "groups", KEY_WHOLE, 8, 1, MAX_WIDTH},
    {"conv_kernel", "conv_width", KEY_WHOLE, 4, 1, 256},
    {"vocab_size", "vocab", KEY_WHOLE, 32768, 1, MAX_WIDTH},
    {"layer_norm_epsilon", "ln_eps", KEY_REAL, 1e-5, 0, 1},
    {"layer_norm_epsilon", "head_eps", KEY_REAL, 1e-5, 0, 1},
    {"tie_word_embeddings", "tied", KEY_FLAG, 0, 0, 1},
    {0},
};

/* Steps are not clamped: the limits say nothing, or are missing. */
void import_refuse_step_limits(struct config_json *j)
{
    const json_t *const limits = config_json_at(j, "time_step_limit");
    const json_t *const low = json_array_get(limits, 0), *const high = json_array_get(limits, 1);
    const bool endless = json_is_real(high) ? isinf(json_real_value(high))
                         : json_is_string(high)
                             ? strcasecmp(json_string_value(high), "infinity") == 0
                             : json_object_size(high) > 0;

    if (limits && (!json_is_number(low) || json_number_value(low) != 0 || !endless))
        import_refuse(j, "time_step_limit: not supported  -> use 0 to Infinity");
}

static void more(struct config_json *j)
{
    const int H = config_json_whole(j, "num_heads", 128, 1, MAX_WIDTH);
    const int D = config_json_whole(j, "hidden_size", 4096, 1, MAX_WIDTH);
    const int width = config_json_whole(j, "head_dim", 64, 1, MAX_WIDTH);
    const double expand = config_json_real(j, "expand", 2, 0, MAX_WIDTH);

    if (expand * D != (double)H * width)
        import_refuse(
            j, "expand %g: num_heads %d of head_dim %d are not %g  -> give a complete config",
            expand, H, width, expand * D);
    import_need_flag(j, "use_bias", false);
    import_need_flag(j, "use_conv_bias", true);
    import_need_flag(j, "rms_norm", true);
    import_need_word(j, "hidden_act", "silu");
    import_refuse_step_limits(j);
    /* of training, and of how it is computed; its program norms behind the gate, whatever
     * norm_before_gate says */
    SKIP(j, "time_step_rank", "time_step_min", "time_step_max", "time_step_floor",
         "time_step_scale", "chunk_size", "residual_in_fp32", "rescale_prenorm_residual",
         "norm_before_gate");
    import_put_common(j, "mamba2");
    SAY(j, {"mixer", "mamba2"}, {"scale", "1"}, {"norm", "pre"}, {"norm_kind", "rms"},
        {"norm_whole", "1"});
    config_json_put(j, "norm_groups", "%d", config_json_whole(j, "n_groups", 8, 1, MAX_WIDTH));
    SAY(j, {"ffn", "none"}, {"d_inner", "1"}); /* of nothing */
}

const struct model_type model_type_mamba2 = {.name = "mamba2",
                                             .prefix = "backbone.",
                                             .embedding = "embeddings.weight",
                                             .layers = "num_hidden_layers",
                                             .context = "max_position_embeddings",
                                             .usual_context = 2048,
                                             .endless = true,
                                             ROWS_OF_FILE};
