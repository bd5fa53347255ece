/* SPDX-License-Identifier: MIT
 *
 * A causal separable convolution (So et al. 2019, "The Evolved Transformer") in a small cell:
 *
 *   attention, separable convolution over the last 7 rows, the same attention again, feed-forward
 *
 * The published cell is evolved.c. Positions are ALiBi's, as memory requires. */
#include "variants/parts/parts.h"

const struct variant variant_sepconv = {
    .name = "sepconv",
    .paper = "So et al. 2019, arXiv:1901.11117",
    .about = "a separable convolution between two attentions with the same weights",
    .control = "alibi --norm pre --ffn swish",
    .pos = &pos_alibi,
    .ffn = &ffn_swish,
    .wiring = WIRING_PRE,
    .subs = "swsf",
};
