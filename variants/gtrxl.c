/* SPDX-License-Identifier: MIT
 *
 * GTrXL: Parisotto et al. 2019, "Stabilizing Transformers for Reinforcement Learning".
 *
 *   n = norm([m; x])
 *   y = gate(x, relu(attn(n_seg; n)))
 *   z = gate(y, relu(ffn(norm(y))))
 *
 * Attention, positions and memory are Transformer-XL's. A gate replaces the residual sum, by
 * default a GRU whose update bias starts at 2, so that a new layer is nearly the identity. The ReLU
 * separates two adjacent linear maps. */
#include "variants/parts/parts.h"

const struct variant variant_gtrxl = {
    .name = "gtrxl",
    .paper = "Parisotto et al. 2019, arXiv:1910.06764",
    .about = "Transformer-XL with norms first and gated residuals",
    .control = "xl",
    .pos = &pos_xl,
    .gate = &gate_gru,
    .wiring = WIRING_REORDER,
};
