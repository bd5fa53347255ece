/* SPDX-License-Identifier: MIT
 *
 * Dynamic mask attention: Fan et al. 2021, "Mask Attention Networks: Rethinking and Strengthen
 * Transformer".
 *
 *   p_ij ~ sigma(w . x_i + d[dist] + u_h) e^(q_i . k_j / sqrt(dh))
 *
 * A mask of numbers between 0 and 1, made of the query's row, the distance and the head. Equations:
 * variants/model/attention/term_man.c. */
#include "variants/parts/parts.h"

const struct variant variant_man = {
    .name = "man",
    .paper = "Fan et al. 2021, arXiv:2103.13597",
    .about = "a trained mask by row, distance and head",
    .control = "vanilla",
    .pos = &pos_none,
    .around = {&term_man},
};
