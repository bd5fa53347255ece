/* SPDX-License-Identifier: MIT
 *
 * Grouped-query attention: Ainslie et al. 2023, "GQA: Training Generalized Multi-Query Transformer
 * Models from Multi-Head Checkpoints".
 *
 *   s_ij = q_i,h . k_j,g / sqrt(dh)
 *   g    = floor(h Hkv / H)
 *
 * H query heads share Hkv key/value heads: the KV cache shrinks by H / Hkv, the arithmetic of
 * attention does not. The paper leaves positions to the model; here they are rotary, as memory
 * requires. */
#include "variants/parts/parts.h"

const struct variant variant_gqa = {
    .name = "gqa",
    .paper = "Ainslie et al. 2023, arXiv:2305.13245",
    .about = "two key/value heads shared by all query heads; --kv-heads",
    AS_ROPE,
    .kv_heads = 2,
};
