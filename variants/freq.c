/* SPDX-License-Identifier: MIT
 *
 * Learned frequencies of absolute sinusoids, which begin as those of Vaswani et al. 2017.
 *
 *   h_t = E[token_t] + [sin(t w), cos(t w)]
 *
 * As vanilla, with w trained. Positions count from the start of the window, so there is no memory.
 */
#include "variants/parts/parts.h"

const struct variant variant_freq = {
    .name = "freq",
    .paper = "Vaswani et al. 2017, arXiv:1706.03762, section 3.5",
    .about = "as vanilla; frequencies are trained",
    .control = "vanilla",
    .pos = &pos_freq,
    .mem = &mem_prefix,
};
