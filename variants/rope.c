/* SPDX-License-Identifier: MIT
 *
 * Rotary positions: Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position
 * Embedding".
 *
 *   s_ij = Rot(i) q_i . Rot(j) k_j / sqrt(dh)
 *
 * Rot(t) rotates pairs of coordinates by t * 10000^(-2f/dh), so the score depends on i - j only,
 * and rotated keys in memory stay valid for later segments. Pairs are coordinate f of the first
 * half of a head with f of the second. That is the paper's pairing of adjacent coordinates with the
 * rows of W_q and W_k permuted. */
#include "variants/parts/parts.h"

const struct variant variant_rope = {
    .name = "rope",
    .alias = "roformer",
    .paper = "Su et al. 2021, arXiv:2104.09864",
    .about = "queries and keys rotated by their positions",
    .control = "vanilla --norm pre",
    .pos = &pos_rope,
    .wiring = WIRING_PRE,
};
