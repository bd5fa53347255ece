/* SPDX-License-Identifier: MIT
 *
 * R-Transformer: Wang, Ma, Liu and Tang 2019, "R-Transformer: Recurrent Neural Network Enhanced
 * Transformer".
 *
 *   x' = x + rnn(norm(x))          a recurrent cell over each window of the last few tokens
 *   y = x' + attn(norm(x'); norm([m; x']))
 *   z = y + ffn(norm(y))
 *
 * No positional encoding: the windows provide order. norm divides by the unbiased deviation, and
 * there is no norm after the last layer. Windows reach into the previous segment, unlike in the
 * published program, so the result does not depend on where a text is cut into segments. */
#include "variants/parts/parts.h"

const struct variant variant_rtransformer = {
    .name = "rtransformer",
    .paper = "Wang et al. 2019, arXiv:1907.05572",
    .about = "a recurrent cell over short windows before attention, no positions",
    .control = "vanilla --norm pre --norm-kind unbiased",
    .pos = &pos_none,
    .wiring = WIRING_PRE,
    .norm_kind = NORM_UNBIASED,
    .rnn_layers = 1,
    .attn_bias = ATTN_BIASED,
    .bare_top = true,
};
