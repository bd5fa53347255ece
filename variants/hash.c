/* SPDX-License-Identifier: MIT
 *
 * Hash layers: Roller et al. 2021, "Hash Layers For Large Sparse Models".
 *
 *   ffn(x) = ffn_e(x)
 *   e      = table[token]
 *
 * The token's number chooses one of E feed-forward networks, in all layers the same
 * (parts/ffn/moe.c): no router, nothing to balance. Attention, positions and memory are
 * Transformer-XL's. */
#include "variants/parts/parts.h"

const struct variant variant_hash = {
    .name = "hash",
    .paper = "Roller et al. 2021, arXiv:2106.04426",
    .about = "Transformer-XL; four feed-forward networks, chosen by the token",
    .control = "xl",
    .pos = &pos_xl,
    .ffn = &ffn_hash,
};
