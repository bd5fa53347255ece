/* SPDX-License-Identifier: MIT
 *
 * AdaNorm: Xu et al. 2019, "Understanding and Improving Layer Normalization".
 *
 *   N(x) = C (1 - k xhat) (.) xhat
 *   xhat = (x - mean) / sqrt(var + eps)
 *   C    = 1
 *   k    = 0.1
 *
 * The gain depends on the row instead of being trained, and counts as a constant in backward
 * (parts/norm.c). Attention, positions and memory are Transformer-XL's. */
#include "variants/parts/parts.h"

const struct variant variant_adanorm = {
    .name = "adanorm",
    .paper = "Xu et al. 2019, arXiv:1911.07013",
    .about = "Transformer-XL with norms whose gain follows from the row",
    AS_XL_PRE,
    .norm_kind = NORM_ADA,
};
