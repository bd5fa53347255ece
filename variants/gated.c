/* SPDX-License-Identifier: MIT
 *
 * Gated attention: Qiu et al. 2025, "Gated Attention for Large Language Models".
 *
 *   o <- o (.) sigma(W_g x),  before W_o
 *
 * x is the normed input of the layer. The gate has an element for each of o, or one per head
 * (out_gate headwise). */
#include "variants/parts/parts.h"

const struct variant variant_gated = {
    .name = "gated",
    .paper = "Qiu et al. 2025, arXiv:2505.06708",
    .about = "the output of each head multiplied by a sigmoid gate",
    .control = "gated --out-gate none",
    .pos = &pos_rope,
    LLAMA_LAYERS,
    .out_gate = OUT_GATE_ELEMENTWISE,
};
