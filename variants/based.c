/* SPDX-License-Identifier: MIT
 *
 * Based: Arora et al. 2024, "Simple linear attention language models balance the recall-throughput
 * tradeoff".
 *
 *   o_i = sum_{j <= i} (1 + s_ij + s_ij^2 / 2) v_j / (sum_{j <= i} (1 + s_ij + s_ij^2 / 2) + 10^-6)
 *   s_ij = q_i . k_j / sqrt(dk)
 *
 * The exponential of softmax as far as its second power, which is at least 1/2: linear attention with
 * 1 + dk (dk + 3) / 2 features. So keys are narrow, 16 numbers a head. The paper's models alternate
 * such layers with attention to a window. */
#include "variants/model/sublayer/sublayer.h"
#include "variants/parts/features.h"

static void sizes(int D, int H, int *dh, int *F) { *dh = min_int(16, max_int(1, D / H)); }

static int values(int D, int H, int dh) { return max_int(1, D / H); }

const struct mixer mixer_based = {
    .name = "based",
    LINEAR_MIXER,
    .features = FEATURES_TAYLOR,
    .eps = 1e-6f,
};

const struct variant variant_based = {
    .name = "based",
    .paper = "Arora et al. 2024, arXiv:2402.18668",
    .about = "products of features that make a second-order exponential; narrow keys",
    .control = "linear",
    .pos = &pos_sinusoid,
    .mem = &mem_sum,
    .mixer = &mixer_based,
    .sizes = sizes,
    .d_value = values,
};
