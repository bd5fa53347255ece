/* SPDX-License-Identifier: MIT
 *
 * Image Transformer, local attention in two dimensions: Parmar et al. 2018, "Image Transformer",
 * section 3.2 and figure 1.
 *
 *   y_0 - m <= y_j,   x_0 - n <= x_j < x_0 + w + n,   j <= i
 *
 * where y, x are row and column of a token in its picture, and y_0, x_0 those of the first token of
 * the query's tile of h rows and w columns: it sees what came before of its tile and of m rows above
 * and n columns at both sides. The stream is what the paper generates: tile after tile, from left
 * to right and from top to bottom, and each tile likewise, token by token. Pictures are 32 tokens
 * wide, and one follows below the other. Positions are rotary. */
#include "variants/parts/parts.h"

const struct variant variant_image2d = {
    .name = "image2d",
    .paper = "Parmar et al. 2018, arXiv:1802.05751",
    .about = "a tile of 8 by 8 tokens and the 8 rows and columns around it, rows of 32",
    AS_ROPE,
    .mask = "rect=8x8,row=32,margin=8x8",
};
