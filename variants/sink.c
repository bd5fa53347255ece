/* SPDX-License-Identifier: MIT
 *
 * A sink per head: OpenAI 2025, "gpt-oss-120b & gpt-oss-20b Model Card".
 *
 *   p_ij = exp(s_ij) / (exp(sink_h) + sum over j of exp(s_ij))
 *
 * One trained number per head joins the softmax as a key without a value. Every other layer sees a
 * window only; projections have biases, few key/value heads. */
#include "variants/parts/parts.h"

const struct variant variant_sink = {
    .name = "sink",
    .alias = "gptoss",
    .paper = "OpenAI 2025, arXiv:2508.10925",
    .about = "a trained logit in each softmax; windows in every other layer",
    .control = "yarn --rope-scaling none --kv-heads 2",
    .pos = &pos_rope,
    LLAMA_LAYERS,
    .kv_heads = 2,
    .attn_bias = ATTN_BIASED,
    .attn_extra = &extra_sink,
    .layer_windows = {2, {128, 0}},
};
