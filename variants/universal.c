/* SPDX-License-Identifier: MIT
 *
 * Universal Transformer: Dehghani et al. 2019, "Universal Transformers".
 *
 *   h^t = block(h^(t-1) + sinusoid(position) + sinusoid(t))      for t = 1.. at most N
 *
 * One layer, repeated with the same weights. Each position halts separately (Graves 2016,
 * arXiv:1603.08983): p = sigma(halt(h^t)) is the weight of h^t in the output, until the p sum to
 * nearly 1. N is the number of layers in other variants, of steps here. */
#include "variants/parts/parts.h"

const struct variant variant_universal = {
    .name = "universal",
    .paper = "Dehghani et al. 2019, arXiv:1807.03819",
    .about = "one layer run up to N times, with adaptive halting per position",
    .control = "vanilla",
    .pos = &pos_none,
    .mem = &mem_none,
    .loops = true,
    .halt = HALT_GRAVES,
};
