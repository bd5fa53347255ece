/* SPDX-License-Identifier: MIT
 *
 * Hard-coded Gaussian attention: You et al. 2020, "Hard-Coded Gaussian Attention for Neural Machine
 * Translation".
 *
 *   s_ij = -(dist - c_h)^2 / 2
 *
 * Heads look at the token before or at the own one, whatever is there: no queries and keys. */
#include "variants/parts/parts.h"

const struct variant variant_hardcoded = {
    .name = "hardcoded",
    .paper = "You et al. 2020, arXiv:2005.00742",
    .about = "scores by distance alone: each head a bell curve around the token or the one before",
    .control = "vanilla",
    .pos = &pos_hardcoded,
};
