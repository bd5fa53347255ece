/* SPDX-License-Identifier: MIT
 *
 * GTrXL: Parisotto et al. 2019, "Stabilizing Transformers for Reinforcement Learning".
 *
 *   n = norm([m; x])
 *   y = gate(x, relu(attn(n_seg; n)))
 *   z = gate(y, relu(ffn(norm(y))))
 *
 * Attention, positions and memory are Transformer-XL's. What is new is the gate in place of the
 * residual sum: by default a GRU cell whose update bias starts at 2, so that a fresh layer is
 * nearly the identity; and the ReLU that keeps two linear maps from meeting. */
#include "variant.h"
#include "variants/parts/parts.h"

const struct variant variant_gtrxl = {
    .name = "gtrxl",
    .paper = "Parisotto et al. 2019, arXiv:1910.06764",
    .about = "Transformer-XL with norm first and gates for residuals",
    .pos = &pos_xl,
    .mem = &mem_segment,
    .gate = &gate_gru,
    .ffn = &ffn_relu,
    .wiring = WIRING_REORDER,
};
