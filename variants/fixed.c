/* SPDX-License-Identifier: MIT
 *
 * The fixed Sparse Transformer: Child et al. 2019, "Generating Long Sequences with Sparse
 * Transformers", section 4.2.
 *
 *   every second head: floor(j / l) = floor(i / l)          the others: j mod l >= l - c
 *
 * in stream positions: the last c of every l tokens summarise the tokens before them for all later
 * ones. Positions are rotary. */
#include "variants/parts/parts.h"

const struct variant variant_fixed = {
    .name = "fixed",
    .paper = "Child et al. 2019, arXiv:1904.10509",
    .about = "half of the heads see their block of 32, half the last 4 keys of every block",
    AS_ROPE,
    .mask = "block=32;fixed=32,summary=4",
};
