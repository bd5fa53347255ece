/* SPDX-License-Identifier: MIT
 *
 * Axial attention over rows of W tokens: Ho et al. 2019, "Axial Attention in Multidimensional
 * Transformers".
 *
 *   every second head: floor(i / W) = floor(j / W), the own row      the others: W divides i - j
 *
 * With --mask-layers 0,1 whole layers alternate, as published. Two layers reach everything above
 * and to the left of a token. Positions are rotary. */
#include "variants/parts/parts.h"

const struct variant variant_axial = {
    .name = "axial",
    .paper = "Ho et al. 2019, arXiv:1912.12180",
    .about = "half of the heads see their row of 64 tokens, half their column",
    AS_ROPE,
    .mask = "block=64;stride=64",
};
