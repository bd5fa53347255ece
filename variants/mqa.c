/* SPDX-License-Identifier: MIT
 *
 * Multi-query attention: Shazeer 2019, "Fast Transformer Decoding: One Write-Head is All You Need".
 *
 *   s_ij = q_i,h . k_j / sqrt(dh)
 *
 * All query heads share one key/value head, so that decoding a token reads H times less memory.
 * Positions are rotary, as for gqa. */
#include "variants/parts/parts.h"

const struct variant variant_mqa = {
    .name = "mqa",
    .paper = "Shazeer 2019, arXiv:1911.02150",
    .about = "one key/value head shared by all query heads",
    AS_ROPE,
    .kv_heads = 1,
};
