/* SPDX-License-Identifier: MIT
 *
 * T5's relative bias: Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified
 * Text-to-Text Transformer", section 2.1.
 *
 *   s_ij = q_i . k_j / sqrt(dh) + rel_bias[bucket(dist)][h]
 *
 * 32 buckets up to distance 128, one table for all layers, root-mean-square norms first. T5 absorbs
 * the factor 1/sqrt(dh) into the initial values of W_q; here it is explicit, as for every
 * variant. */
#include "variants/parts/parts.h"

const struct variant variant_t5 = {
    .name = "t5",
    .paper = "Raffel et al. 2020, arXiv:1910.10683",
    .about = "a learned bias per head and bucket of distances",
    .control = "vanilla --norm pre --norm-kind rms",
    .pos = &pos_t5,
    .wiring = WIRING_PRE,
    .norm_kind = NORM_RMS,
};
