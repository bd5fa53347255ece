/* SPDX-License-Identifier: MIT
 *
 * Macaron: Lu et al. 2019, "Understanding and Improving Transformer From a Multi-Particle Dynamic
 * System Point of View".
 *
 *   x' = x + ffn0(norm(x)) / 2
 *   y = x' + attn(norm(x'); norm([m; x']))
 *   z = y + ffn(norm(y)) / 2
 *
 * The memory m holds the input of attention. --norm macaron_post normalises the sums instead.
 * Attention, positions and memory are Transformer-XL's. */
#include "variants/parts/parts.h"

const struct variant variant_macaron = {
    .name = "macaron",
    .paper = "Lu et al. 2019, arXiv:1906.02762",
    .about = "Transformer-XL with half a feed-forward before and after attention",
    .control = "xl --norm pre",
    .pos = &pos_xl,
    .wiring = WIRING_MACARON_PRE,
};
