/* SPDX-License-Identifier: MIT
 *
 * Image Transformer, local attention in one dimension: Parmar et al. 2018, "Image Transformer".
 *
 *   floor(i / b) b - m <= j <= i
 *
 * in stream positions: a query sees its block of b tokens and m tokens before that block. Positions
 * are rotary. */
#include "variants/parts/parts.h"

const struct variant variant_image = {
    .name = "image",
    .paper = "Parmar et al. 2018, arXiv:1802.05751",
    .about = "block of 64 tokens and the 64 before that block",
    AS_ROPE,
    .mask = "block=64,memory=64",
};
