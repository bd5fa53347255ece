/* SPDX-License-Identifier: MIT
 *
 * Gemma 2: Gemma Team 2024, "Gemma 2: Improving Open Language Models at a Practical Size".
 *
 *   s_ij = 50 tanh(q_i . k_j / (50 sqrt(dh)))     logits <- 30 tanh(logits / 30)
 *
 * Scores and logits have a cap; every other layer sees a window only. Its successor norms queries
 * and keys instead, has five local layers to a global one and a larger base in that one: qk_norm,
 * layer_windows and layer_rope_base in files. */
#include "variant.h"
#include "variants/parts/parts.h"

const struct variant variant_gemma = {
    .name = "gemma",
    .paper = "Gemma Team 2024, arXiv:2408.00118",
    .about = "capped scores and logits; windows in every other layer",
    .control = "yarn --rope-scaling none --kv-heads 2 --ffn geglu",
    .pos = &pos_rope,
    .mem = &mem_segment,
    .ffn = &ffn_geglu,
    .wiring = WIRING_PRE,
    .norm_kind = NORM_RMS,
    .bare_ffn = true,
    .kv_heads = 2,
    .soft_cap = 50,
    .logit_cap = 30,
    .layer_windows = {2, {4096, 0}},
};
