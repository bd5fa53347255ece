/* SPDX-License-Identifier: MIT
 *
 * Performer: Choromanski et al. 2021, "Rethinking Attention with Performers".
 *
 *   o_i      = sum_{j <= i} (phi(q_i) . phi(k_j)) v_j / sum_{j <= i} phi(q_i) . phi(k_j)
 *   phi_r(x) = exp(w_r . x' - |x'|^2 / 2) / sqrt(m)
 *   x'       = x / dh^(1/4)
 *
 * With w_r drawn from a normal distribution, phi(q) . phi(k) is exp(q . k / sqrt(dh)) on average
 * (equation 5); orthogonal directions reduce the variance. favor_hyp uses each direction with both
 * signs. The rest is as in linear attention. */
#include "variants/model/sublayer/sublayer.h"
#include "variants/parts/features.h"

const struct mixer mixer_favor = {.name = "favor", LINEAR_MIXER, .features = FEATURES_EXP};

const struct mixer mixer_favor_hyp = {.name = "favor_hyp", LINEAR_MIXER, .features = FEATURES_COSH};

const struct mixer mixer_favor_trig = {
    .name = "favor_trig", LINEAR_MIXER, .features = FEATURES_TRIG};

const struct mixer mixer_favor_relu = {
    .name = "favor_relu", LINEAR_MIXER, .features = FEATURES_RELU};

const struct variant variant_performer = {
    .name = "performer",
    .paper = "Choromanski et al. 2021, arXiv:2009.14794",
    .about = "linear attention with random features for the exponential",
    .control = "linear",
    .pos = &pos_sinusoid,
    .mem = &mem_sum,
    .mixer = &mixer_favor,
};
