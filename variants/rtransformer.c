/* SPDX-License-Identifier: MIT
 *
 * R-Transformer: Wang, Ma, Liu and Tang 2019, "R-Transformer: Recurrent Neural Network Enhanced
 * Transformer".
 *
 *   x' = x + rnn(norm(x))          a recurrent cell over each window of the last few tokens
 *   y = x' + attn(norm(x'); norm([m; x']))
 *   z = y + ffn(norm(y))
 *
 * No codes of positions: the windows tell what comes after what. norm divides by the unbiased
 * deviation, and there is none behind the last layer. Windows reach into the segment before, which
 * the published program does not do: so a text may be cut into segments anywhere. */
#include "variant.h"
#include "variants/parts/parts.h"

const struct variant variant_rtransformer = {
    .name = "rtransformer",
    .paper = "Wang et al. 2019, arXiv:1907.05572",
    .about = "a recurrent cell over short windows in front of attention, no positions",
    .pos = &pos_none,
    .mem = &mem_segment,
    .ffn = &ffn_relu,
    .wiring = WIRING_PRE,
    .norm_kind = NORM_UNBIASED,
    .rnn_layers = 1,
    .attn_bias = true,
    .bare_top = true,
};
