/* SPDX-License-Identifier: MIT
 *
 * Block-local attention: Parmar et al. 2018, "Image Transformer", in one dimension; the local
 * attention of Qiu et al. 2020, "Blockwise Self-Attention".
 *
 *   key j is visible to query i if floor(j / b) >= floor(i / b) - 1
 *
 * in stream positions: its own block of b and the one before. Positions are rotary. */
#include "variants/parts/parts.h"

const struct variant variant_block = {
    .name = "block",
    .paper = "Parmar et al. 2018, arXiv:1802.05751",
    .about = "the query's block of 32 and the one before",
    AS_ROPE,
    .mask = "block=32,back=1",
};
