/* SPDX-License-Identifier: MIT
 *
 * ALiBi: Press et al. 2022, "Train Short, Test Long: Attention with Linear Biases Enables Input
 * Length Extrapolation".
 *
 *   s_ij = q_i . k_j / sqrt(dh) - slope_h dist
 *
 * The slopes are a geometric sequence over the heads. Nothing is trained; distances beyond those of
 * training are simply penalised more. */
#include "variants/parts/parts.h"

const struct variant variant_alibi = {
    .name = "alibi",
    .paper = "Press et al. 2022, arXiv:2108.12409",
    .about = "scores decrease linearly with distance, one slope per head",
    .control = "vanilla",
    .pos = &pos_alibi,
};
