/* SPDX-License-Identifier: MIT
 *
 * Linear attention: Katharopoulos et al. 2020, "Transformers are RNNs: Fast Autoregressive
 * Transformers with Linear Attention".
 *
 *   o_i = sum_{j <= i} (phi(q_i) . phi(k_j)) v_j / (sum_{j <= i} phi(q_i) . phi(k_j) + eps)
 *   phi(x) = elu(x) + 1
 *
 * Without the softmax the sums over j are a matrix S += phi(k_j) v_j^T and a vector z += phi(k_j),
 * so a token costs the same after any context. They contain all past tokens; none is dropped.
 * Sinusoids are added to the embedding. */
#include "variants/model/sublayer/sublayer.h"
#include "variants/parts/features.h"

const struct mixer mixer_linear_elu = {
    .name = "linear_elu",
    LINEAR_MIXER,
    .features = FEATURES_ELU,
    .eps = 1e-6f,
};

const struct variant variant_linear = {
    .name = "linear",
    .paper = "Katharopoulos et al. 2020, arXiv:2006.16236",
    .about = "products of features replace softmax; the state is one matrix",
    .control = "vanilla",
    .pos = &pos_sinusoid,
    .mem = &mem_sum,
    .mixer = &mixer_linear_elu,
};
