/* SPDX-License-Identifier: MIT
 *
 * Set Transformer: Lee et al. 2019, "Set Transformer: A Framework for Attention-based
 * Permutation-Invariant Neural Networks".
 *
 *   h         = q + softmax(q k^T / sqrt(W)) v
 *   MAB(Q, X) = h + relu(W_o h + b)
 *   ISAB(x)   = MAB_1(x, MAB_0(I, x))
 *
 * q is a map of Q, k and v are maps of X, W is the width of all heads. Norms, if there are
 * any, follow both sums.
 * m learned rows I attend to the text and the text to their results: the cost is linear in its
 * length, and the order of rows means nothing. Every row reads the whole text. */
#include "variant.h"
#include "variants/model/sublayer/sublayer.h"
#include "variants/parts/parts.h"

const struct mixer mixer_isab = {.name = "isab",
                                 .numbers = &isab_numbers,
                                 .kind = &sublayer_isab,
                                 .unscaled = true,
                                 .both = true,
                                 .excludes = EXCLUDES(HAS_CAUSAL, HAS_GROUPS, HAS_ATTN_BIAS)};

const struct variant variant_set = {
    .name = "set",
    .paper = "Lee et al. 2019, arXiv:1810.00825",
    .about = "learned rows attend to the text, the text to their results",
    .control = "vanilla --direction both",
    .pos = &pos_none,
    .mem = &mem_none,
    .ffn = &ffn_relu,
    .mixer = &mixer_isab,
    .wiring = WIRING_POST,
    .bidirectional = true,
};
