/* SPDX-License-Identifier: MIT
 *
 * Average attention: Zhang et al. 2018, "Accelerating Neural Transformer via an Average Attention
 * Network".
 *
 *   g_t    = FFN((x_0 + .. + x_t) / (t + 1))
 *   [i; f] = sigma(W [x_t; g_t] + b)
 *   y      = i x_t + f g_t
 *
 * The average of all positions so far replaces attention. A token costs the same after any context:
 * the running sum is the whole state. */
#include "variant.h"
#include "variants/model/sublayer/sublayer.h"
#include "variants/parts/parts.h"

const struct mixer mixer_aan = {.name = "aan", .kind = &sublayer_aan};

const struct variant variant_aan = {
    .name = "aan",
    .paper = "Zhang et al. 2018, arXiv:1805.00631",
    .about = "a gated average of all positions so far",
    .pos = &pos_sinusoid,
    .mem = &mem_sum,
    .ffn = &ffn_relu,
    .mixer = &mixer_aan,
    .wiring = WIRING_POST,
};
