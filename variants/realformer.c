/* SPDX-License-Identifier: MIT
 *
 * RealFormer: He et al. 2020, "RealFormer: Transformer Likes Residual Attention".
 *
 *   S^l = X^l / sqrt(dh) + S^(l-1)
 *   A^l = softmax(S^l)
 *
 * X^l are the scores of layer l, here Transformer-XL's with their position terms; each layer adds
 * those of the layer below. For deep models the authors use the mean of the scores so far, A^l =
 * softmax(S^l / (l+1)), and pass the sum on. Nothing crosses segments. */
#include "variants/parts/parts.h"

const struct variant variant_realformer = {
    .name = "realformer",
    .paper = "He et al. 2020, arXiv:2012.11747",
    .about = "as xl; scores are added to those of the next layer",
    .control = "xl",
    .pos = &pos_xl,
    .score_residual = SCORE_RESIDUAL_SUM,
};

const struct variant variant_realformer_mean = {
    .name = "realformer-mean",
    .paper = "He et al. 2020, arXiv:2012.11747",
    .about = "as realformer; softmax of the mean of all layers' scores so far",
    AS_XL_PRE,
    .score_residual = SCORE_RESIDUAL_MEAN,
};
