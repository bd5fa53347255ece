/* SPDX-License-Identifier: MIT
 *
 * Transparent attention: Bapna et al. 2018, "Training Deeper Neural Machine Translation Models with
 * Transparent Attention", in the form that a decoder alone has.
 *
 *   logits read  sum over l: softmax(w)_l h^l,  the states after all layers
 *
 * Every layer receives its share of the gradient directly (model/lm/blend.h). Norms come first; all
 * else is Transformer-XL's. */
#include "variants/parts/parts.h"

const struct variant variant_transparent = {
    .name = "transparent",
    .paper = "Bapna et al. 2018, arXiv:1808.07561",
    .about = "Transformer-XL; the output reads a trained sum of all layers",
    AS_XL_PRE,
    .transparent = TRANSPARENT_TOP,
};
