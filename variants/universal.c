/* SPDX-License-Identifier: MIT
 *
 * Universal Transformer: Dehghani et al. 2019, "Universal Transformers".
 *
 *   h^t = block(h^(t-1) + sinusoid(position) + sinusoid(t)),   t = 1.. at most N
 *
 * One layer, run again and again with the same weights. Each position halts by itself (Graves 2016,
 * arXiv:1603.08983): p = sigma(halt(h^t)) is the weight of h^t in the output, until the p add up to
 * nearly 1. N layers of other variants are N steps here. */
#include "variant.h"
#include "variants/parts/parts.h"

const struct variant variant_universal = {
    .name = "universal",
    .paper = "Dehghani et al. 2019, arXiv:1807.03819",
    .about = "one layer run up to N times, each position as often as it wants",
    .pos = &pos_none,
    .mem = &mem_none,
    .ffn = &ffn_relu,
    .wiring = WIRING_POST,
    .loops = true,
    .halt = HALT_GRAVES,
};
