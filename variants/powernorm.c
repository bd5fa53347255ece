/* SPDX-License-Identifier: MIT
 *
 * PowerNorm: Shen et al. 2020, "PowerNorm: Rethinking Batch Normalization in Transformers".
 *
 *   N(x) = w (.) x / sqrt(phi + eps) + b
 *   phi' = alpha phi + (1-alpha) mean over rows of x^2
 *
 * Each channel is divided by a running quadratic mean: in use an affine map, in training with a
 * backward pass of its own (parts/norm_power.c). Attention, positions and memory are
 * Transformer-XL's. */
#include "variants/parts/parts.h"

const struct variant variant_powernorm = {
    .name = "powernorm",
    .paper = "Shen et al. 2020, arXiv:2003.07845",
    .about = "Transformer-XL with channels divided by their running quadratic means",
    .control = "xl",
    .pos = &pos_xl,
    .norm_kind = NORM_POWER,
};
