/* SPDX-License-Identifier: MIT
 *
 * Grouped-query attention: Ainslie et al. 2023, "GQA: Training Generalized Multi-Query Transformer
 * Models from Multi-Head Checkpoints".
 *
 *   s_ij = q_i,h . k_j,g / sqrt(dh),  g = floor(h Hkv / H)
 *
 * Hkv heads of keys and values serve H heads of queries: the memory of keys and values shrinks by
 * H / Hkv, the arithmetic of the core does not. The paper leaves positions to the model around it;
 * here they are rotary, which memory needs. */
#include "variant.h"
#include "variants/parts/parts.h"

const struct variant variant_gqa = {
    .name = "gqa",
    .paper = "Ainslie et al. 2023, arXiv:2305.13245",
    .about = "two heads of keys and values for all heads of queries; --kv-heads",
    .pos = &pos_rope,
    .mem = &mem_segment,
    .ffn = &ffn_relu,
    .wiring = WIRING_PRE,
    .kv_heads = 2,
};
