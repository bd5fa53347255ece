/* SPDX-License-Identifier: MIT
 *
 * Compressive Transformer: Rae et al. 2019, "Compressive Transformers for Long-Range Sequence
 * Modelling".
 *
 *   y   = norm(x + attn(x; [cm; m; x]))
 *   cm' = the last of [cm; compress(rows that leave m)]
 *
 * Rows too old for the memory m are not dropped: four become one row of the compressed memory cm,
 * by a convolution trained only to preserve what attention read from them. Half of the memory is
 * compressed; distances count rows. Attention and positions are Transformer-XL's. */
#include "variants/parts/parts.h"

const struct variant variant_compressive = {
    .name = "compressive",
    .paper = "Rae et al. 2019, arXiv:1911.05507",
    .about = "Transformer-XL with its oldest memory compressed, four rows to one",
    .control = "xl",
    .pos = &pos_xl,
    .mem = &mem_compressive,
};
