/* SPDX-License-Identifier: MIT
 *
 * KERPLE, the logarithmic form: Chi et al. 2022, "KERPLE: Kernelized Relative Positional Embedding
 * for Length Extrapolation".
 *
 *   s_ij = q_i . k_j / sqrt(dh) - a_h log(1 + b_h dist)
 *
 * a and b are trained, positive, one pair per layer and head. */
#include "variants/parts/parts.h"

const struct variant variant_kerple = {
    .name = "kerple",
    .paper = "Chi et al. 2022, arXiv:2205.09921",
    .about = "scores decrease with the logarithm of distance, at a learned rate",
    .control = "vanilla --norm pre",
    .pos = &pos_kerple,
    .wiring = WIRING_PRE,
};
