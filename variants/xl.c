/* SPDX-License-Identifier: MIT
 *
 * Transformer-XL: Dai et al. 2019, "Attentive Language Models beyond a Fixed-Length Context".
 *
 *   s_ij = ((q_i + u) . k_j + (q_i + w) . W_r R[dist]) / sqrt(dh)
 *
 * R[n] is the sinusoidal encoding of distance n. Keys and values come from [memory; segment], where
 * memory holds the layer's own inputs for earlier tokens. */
#include "variants/parts/parts.h"

const struct variant variant_xl = {
    .name = "xl",
    .paper = "Dai et al. 2019, arXiv:1901.02860",
    .about = "projected sinusoids of the distance, segment recurrence",
    .control = "vanilla",
    .pos = &pos_xl,
};
