/* SPDX-License-Identifier: MIT
 *
 * Conditional position encodings: Chu et al. 2021, "Conditional Positional Encodings for Vision
 * Transformers", here along one axis and causal.
 *
 *   h <- h + b + sum over s < 4: w[s] (.) h[t-3+s]      in front of each layer
 *
 * Scores are q.k alone; order comes from the convolution, whose zeros before the stream say where
 * it begins (model/sublayer/sublayer_conv.c). */
#include "variants/parts/parts.h"

const struct variant variant_cpe = {
    .name = "cpe",
    .paper = "Chu et al. 2021, arXiv:2102.10882",
    .about = "a short convolution in front of each layer, no positions",
    .control = "vanilla",
    .pos = &pos_none,
    .subs = "csf",
};
