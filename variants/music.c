/* SPDX-License-Identifier: MIT
 *
 * Music Transformer: Huang et al. 2019, "Music Transformer: Generating Music with Long-Term
 * Structure".
 *
 *   s_ij = q_i . (k_j + rel_k[h, dist]) / sqrt(dh)
 *
 * Shaw's keys in each head, for distances up to the longest, and no relative values. The paper's
 * skewing is how the table is read, not another function. */
#include "variants/parts/parts.h"

const struct variant variant_music = {
    .name = "music",
    .paper = "Huang et al. 2019, arXiv:1809.04281",
    .about = "as shaw; keys only, in each head, for 1024 distances",
    .control = "shaw",
    .pos = &pos_shaw,
    .shaw = {.per_head = true, .keys_only = true, .clip = 1024},
};
