/* SPDX-License-Identifier: MIT
 *
 * The strided Sparse Transformer: Child et al. 2019, "Generating Long Sequences with Sparse
 * Transformers", section 4.2.
 *
 *   every second head: dist < l          the others: dist mod l = 0
 *
 * Two layers reach every past token; with l near sqrt(K) a query costs 2 sqrt(K). Positions are
 * rotary. */
#include "variants/parts/parts.h"

const struct variant variant_strided = {
    .name = "strided",
    .paper = "Child et al. 2019, arXiv:1904.10509",
    .about = "half of the heads see 32 keys, half every 32nd key",
    AS_ROPE,
    .mask = "window=32;stride=32",
};
