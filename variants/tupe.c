/* SPDX-License-Identifier: MIT
 *
 * TUPE, untied positions: Ke et al. 2021, "Rethinking Positional Encoding in Language
 * Pre-training".
 *
 *   s_ij = (q_i . k_j + (U_q p_i) . (U_k p_j)) / sqrt(2 dh)
 *   p    = norm(pos.weight)
 *
 * Positions are scored against positions and content against content, with separate maps. The
 * position scores are one matrix per layer and head, independent of the text. Positions count from
 * the window's start, so the window is recomputed. */
#include "variants/parts/parts.h"

const struct variant variant_tupe = {
    .name = "tupe",
    .paper = "Ke et al. 2021, arXiv:2006.15595",
    .about = "q.k + a learned product of absolute positions",
    .control = "vanilla",
    .pos = &pos_tupe,
    .mem = &mem_none,
    .products = 2,
};
