/* SPDX-License-Identifier: MIT
 *
 * Lazyformer: Ying et al. 2021, "LazyFormer: Self Attention with Lazy Update".
 *
 *   A^l = softmax(S^l) if m divides l, otherwise A^(l-1)
 *
 * Layers come in groups of m; only the first of a group has queries and keys, the others apply its
 * probabilities to values of their own. Positions are ALiBi's. What is handed on are the scores. */
#include "variants/parts/parts.h"

const struct variant variant_lazy = {
    .name = "lazy",
    .alias = "lazyformer",
    .paper = "Ying et al. 2021, arXiv:2102.12702",
    .about = "as alibi; every second layer has the probabilities of the one before",
    .control = "alibi",
    .pos = &pos_alibi,
    .lazy_group = 2,
};
