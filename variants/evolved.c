/* SPDX-License-Identifier: MIT
 *
 * The decoder of the Evolved Transformer: So et al. 2019, "The Evolved Transformer", figure 3,
 * without attention to an encoder. A cell of it stands for two layers of a Transformer:
 *
 *   x += attention of twice as many heads
 *   x += sep_7(LN(relu(sep_11(x)) + [sep_7(x); 0]))          separable convolutions
 *   x += attention
 *   x += W_2 LN(swish(W_1 x))
 *
 * each of LN(x); each with weights of its own (model/sublayer/sublayer_conv.c, ffn/ffn.c).
 * The paper's first attention has 16 heads where the second has 8. Positions are ALiBi's, as memory
 * requires. A smaller cell is sepconv.c. */
#include "variants/parts/parts.h"

const struct variant variant_evolved = {
    .name = "evolved",
    .paper = "So et al. 2019, arXiv:1901.11117",
    .about = "a cell of two attentions, convolutions side by side and a normed feed-forward",
    .control = "alibi --norm pre",
    .pos = &pos_alibi,
    .ffn = &ffn_swish_norm,
    .wiring = WIRING_PRE,
    .subs = "mbsf",
};
