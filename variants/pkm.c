/* SPDX-License-Identifier: MIT
 *
 * Product-key memory: Lample et al. 2019, "Large Memory Layers with Product Keys".
 *
 *   ffn(x) = sum over heads and the 32 best keys: softmax(key . q) value
 *   q      = W x + b
 *
 * Keys are pairs of 128 half keys each, so that 2 . 128 products find the best of 128^2
 * (parts/ffn/ffn_pkm.c). It replaces the feed-forward network of every layer, in the paper that of
 * one. Attention, positions and memory are Transformer-XL's. */
#include "variants/parts/parts.h"

const struct variant variant_pkm = {
    .name = "pkm",
    .paper = "Lample et al. 2019, arXiv:1907.05242",
    .about = "Transformer-XL; tokens read from a large table instead of a feed-forward network",
    .control = "xl",
    .pos = &pos_xl,
    .ffn = &ffn_pkm,
};
