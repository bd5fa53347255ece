/* SPDX-License-Identifier: MIT
 *
 * Shaw et al. 2018, "Self-Attention with Relative Position Representations".
 *
 *   s_ij = q_i . (k_j + rel_k[min(dist, clip)]) / sqrt(dh)
 *   o_i  = sum_j a_ij (v_j + rel_v[min(dist, clip)])
 *
 * Learned vectors per clipped distance, for keys and values. Distances span memory, so segments can
 * be joined: everything farther back than `clip` shares one vector. */
#include "variants/parts/parts.h"

const struct variant variant_shaw = {
    .name = "shaw",
    .alias = "rpr",
    .paper = "Shaw et al. 2018, arXiv:1803.02155",
    .about = "learned vectors per clipped distance, keys and values",
    .control = "vanilla",
    .pos = &pos_shaw,
};
