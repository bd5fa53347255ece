/* SPDX-License-Identifier: MIT
 *
 * Linear attention: Katharopoulos et al. 2020, "Transformers are RNNs: Fast Autoregressive
 * Transformers with Linear Attention".
 *
 *   o_i = sum_{j <= i} (phi(q_i) . phi(k_j)) v_j / (sum_{j <= i} phi(q_i) . phi(k_j) + eps)
 *   phi(x) = elu(x) + 1
 *
 * Without the softmax the sums over j are a matrix S += phi(k_j) v_j^T and a vector z += phi(k_j),
 * so a token costs the same after any past. All of the past is in them and nothing can be
 * forgotten. No positions: the order of tokens enters only in what has been summed before. */
#include "variant.h"
#include "variants/model/sublayer.h"
#include "variants/parts/parts.h"

const struct mixer mixer_linear_elu = {
    .name = "linear_elu",
    .kind = &sublayer_linear,
    .features = FEATURES_ELU,
    .eps = 1e-6f,
};

const struct variant variant_linear = {
    .name = "linear",
    .paper = "Katharopoulos et al. 2020, arXiv:2006.16236",
    .about = "products of features for the softmax: one matrix is all of the past",
    .pos = &pos_none,
    .mem = &mem_state,
    .ffn = &ffn_relu,
    .mixer = &mixer_linear_elu,
    .wiring = WIRING_POST,
};
