/* SPDX-License-Identifier: MIT
 *
 * Localness: Yang et al. 2018, "Modeling Localness for Self-Attention Networks", in a form for
 * streams.
 *
 *   s_ij = q_i . k_j / sqrt(dh) - (dist - P_i)^2 / (2 (D_i / 2)^2)
 *
 * Each query computes a distance P that it prefers and a width D, both up to a span of 64 tokens.
 * In the paper P is a place in the text (gauss_form published, in files). Equations:
 * variants/model/attention/term_localness.c. */
#include "variants/parts/parts.h"

const struct variant variant_localness = {
    .name = "localness",
    .paper = "Yang et al. 2018, arXiv:1810.10182",
    .about = "every query prefers keys near a distance that it computes",
    .control = "vanilla",
    .pos = &pos_none,
    .around = {&term_localness},
};
