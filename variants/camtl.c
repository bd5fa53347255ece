/* SPDX-License-Identifier: MIT
 *
 * Conditional attention of CA-MTL: Pilault, Elhattami and Pal 2021, "Conditionally Adaptive
 * Multi-Task Learning".
 *
 *   S = q . k / sqrt(dh) + block diagonal of A_j (.) gamma(z) + beta(z)
 *
 * A task's vector z scales and moves the columns of trained matrices, which are added to the scores
 * of places in the same block. Every sequence has its task; without one z is 0. Equations:
 * variants/model/attention/term_camtl.c. */
#include "variants/parts/parts.h"

const struct variant variant_camtl = {
    .name = "camtl",
    .paper = "Pilault et al. 2021, arXiv:2009.09139",
    .about = "blocks of scores that a task's vector scales, in both directions",
    .control = "bert",
    .pos = &pos_learned,
    .ffn = &ffn_gelu,
    .attn_bias = ATTN_BIASED,
    .bidirectional = true,
    .around = {&term_camtl},
};
