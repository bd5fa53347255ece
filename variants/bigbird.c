/* SPDX-License-Identifier: MIT
 *
 * BigBird, causal: Zaheer et al. 2020, "Big Bird: Transformers for Longer Sequences".
 *
 *   key j is visible to query i if its block of b is i's own, the one before, the first of the
 *   stream, or one of r drawn at random per query block from those before
 *
 * as far as memory reaches. Positions are rotary. */
#include "variants/parts/parts.h"

const struct variant variant_bigbird = {
    .name = "bigbird",
    .paper = "Zaheer et al. 2020, arXiv:2007.14062",
    .about = "two blocks of 16, the first block of the stream and two random ones",
    AS_ROPE,
    .mask = "block=16,back=1,global=16,random=2",
};
