/* SPDX-License-Identifier: MIT
 *
 * LLaMA: Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models", with the
 * grouped heads of its successors.
 *
 *   y = x + attn(rms(x); rms([m; x]))
 *   z = y + W_2 (swish(W_g rms(y)) (.) W_1 rms(y))
 *
 * A combination of known parts: rotary positions, root-mean-square norms first, a gated
 * feed-forward network without biases (at 2/3 of the plain width it costs the same), few key/value
 * heads, an output matrix that is not tied to the embedding. */
#include "variants/parts/parts.h"

const struct variant variant_llama = {
    .name = "llama",
    .paper = "Touvron et al. 2023, arXiv:2302.13971",
    .about = "rotary positions, rms norms, swiglu without biases, few key/value heads",
    .control = "rope",
    .pos = &pos_rope,
    LLAMA_LAYERS,
    .kv_heads = 2,
    .untied = true,
};
