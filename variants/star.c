/* SPDX-License-Identifier: MIT
 *
 * Star-Transformer: Guo et al. 2019, in a form for streams.
 *
 *   i - j < 2 or j = 0
 *
 * A token sees its neighbour and the first token. In both directions this is the paper's relay, which
 * sees all tokens; in a stream it sees itself only, and is a sink. Positions are rotary. */
#include "variants/parts/parts.h"

const struct variant variant_star = {
    .name = "star",
    .paper = "Guo et al. 2019, arXiv:1902.09113",
    .about = "the token before and the first of all, a sink; --direction both: a relay",
    AS_ROPE,
    .mask = "window=2,global=1",
};
