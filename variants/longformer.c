/* SPDX-License-Identifier: MIT
 *
 * Longformer: Beltagy et al. 2020, "Longformer: The Long-Document Transformer".
 *
 *   key j is visible to query i if dist < w or j < g
 *
 * A sliding window, and the first g tokens of the stream for every query, as long as memory holds
 * them. Global tokens share the projections of the others; in the paper they have their own.
 * Positions are rotary. */
#include "variants/parts/parts.h"

const struct variant variant_longformer = {
    .name = "longformer",
    .paper = "Beltagy et al. 2020, arXiv:2004.05150",
    .about = "the newest 64 keys and the first 4 of the stream",
    AS_ROPE,
    .mask = "window=64,global=4",
};
