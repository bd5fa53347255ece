/* SPDX-License-Identifier: MIT
 *
 * Gaussian Transformer: Guo et al. 2019, "Gaussian Transformer: A Lightweight Approach for Natural
 * Language Inference" (AAAI).
 *
 *   s_ij = q_i . k_j / sqrt(dh) - |w_h dist^2 + b_h| */
#include "variants/parts/parts.h"

const struct variant variant_gaussian = {
    .name = "gaussian",
    .paper = "Guo et al. 2019, AAAI 33",
    .about = "less for keys far away: the square of the distance, learned weights",
    .control = "vanilla",
    .pos = &pos_gaussian,
};
