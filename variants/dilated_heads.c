/* SPDX-License-Identifier: MIT
 *
 * Dilated windows that differ by head: Child et al. 2019 and Beltagy et al. 2020, section 3.1.
 *
 *   |i - j| < w r and r divides i - j,    r = 1, 2, 4 for the heads in turn
 *
 * Positions are rotary. */
#include "variants/parts/parts.h"

const struct variant variant_dilated_heads = {
    .name = "dilated-heads",
    .paper = "Beltagy et al. 2020, arXiv:2004.05150",
    .about = "windows of 64 keys, spaced by 1, 2, 4 or 8 for the heads in turn",
    AS_ROPE,
    .mask = "window=64;window=64,dilation=2;window=64,dilation=4;window=64,dilation=8",
};
