/* SPDX-License-Identifier: MIT
 *
 * Predictive attention: Wang et al. 2021, "Predictive Attention Transformer: Improving Transformer
 * with Attention Map Prediction", later "Evolving Attention with Residual Convolutions".
 *
 *   S^l = (1 - a) q . k / sqrt(dh) + a conv(S^(l-1))
 *
 * A convolution over the scores of the layer below, whose channels are the heads, predicts those of
 * a layer; it reads rows of earlier queries and the own one only. Positions are added to the input.
 * Equations: variants/model/attention/term_predict.c. */
#include "variants/parts/parts.h"

const struct variant variant_predictive = {
    .name = "predictive",
    .alias = "evolving",
    .paper = "Wang et al. 2021, arXiv:2102.12895",
    .about = "as vanilla; a convolution over the scores of the layer below predicts scores",
    .control = "vanilla",
    .pos = &pos_sinusoid,
    .mem = &mem_none,
    .around = {&term_predict},
};
