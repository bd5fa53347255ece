/* SPDX-License-Identifier: MIT
 *
 * olmo2 (OLMo Team 2025, arXiv:2501.00656): each sub-layer's output is normed in place of its
 * input; queries and keys are normed over all heads of a row. */
#include "llama.h"

/* clang-format off */
static const struct tensor_row tensors[] = {
    {.ours = "embed", .published = "embed_tokens"},
    {.ours = "layers.*.ln1_out", .published = "layers.*.post_attention_layernorm"},
    {.ours = "layers.*.ln2_out", .published = "layers.*.post_feedforward_layernorm"},
    LLAMA_ATTENTION,
    {.ours = "layers.*.attn.q_norm", .published = "layers.*.self_attn.q_norm"},
    {.ours = "layers.*.attn.k_norm", .published = "layers.*.self_attn.k_norm"},
    LLAMA_FEED_FORWARD,
    {.ours = "final_ln", .published = "norm"},
    LLAMA_OUTPUT,
    {0},
};
/* clang-format on */

static const struct key_row keys[] = {
    LLAMA_KEYS(1e-5, 0), {"attention_bias", "attn_bias", KEY_FLAG, 0, 0, 1}, {0}};

static void more(struct config_json *j)
{
    import_put_rotary(j, &llama_rotary, import_put_heads(j, "qknorm", 0, 0));
    import_put_ffn(j, "hidden_act", "silu", llama_acts);
    import_check_layer_types(j, "full_attention");
    config_json_put(j, "norm", "res_post");
    config_json_put(j, "ff_bias", "0");
    config_json_put(j, "qk_norm", "1");
    config_json_put(j, "qk_norm_over", "row");
    config_json_put(j, "head_eps", "%.9g", config_json_real(j, "rms_norm_eps", 1e-5, 0, 1));
}

const struct model_type model_type_olmo2 = {.name = "olmo2",
                                            LLAMA_FAMILY,
                                            .usual_context = 2048,
                                            .keys = keys,
                                            .tensors = tensors,
                                            .more = more};
