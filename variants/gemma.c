/* SPDX-License-Identifier: MIT
 *
 * Gemma 2: Gemma Team 2024, "Gemma 2: Improving Open Language Models at a Practical Size".
 *
 *   s_ij = 50 tanh(q_i . k_j / (50 sqrt(dh)))     logits <- 30 tanh(logits / 30)
 *
 * Scores and logits have a cap; every other layer sees a window only; sub-layers are normed before
 * and after. Gemma 3 (2025, arXiv:2503.19786) norms queries and keys in place of the caps and has
 * five layers with a window to one that sees all, with a larger base of rotation. */
#include "variants/parts/parts.h"

#define GEMMA_PARTS                                                                                \
    .pos = &pos_rope, .ffn = &ffn_geglu_tanh, .wiring = WIRING_PERI, .norm_kind = NORM_RMS,        \
    .bare_ffn = true, .kv_heads = 2

const struct variant variant_gemma = {
    .name = "gemma",
    .paper = "Gemma Team 2024, arXiv:2408.00118",
    .about = "capped scores and logits; windows in every other layer",
    .control = "yarn --rope-scaling none --kv-heads 2 --norm peri --ffn geglu_tanh",
    GEMMA_PARTS,
    .soft_cap = 50,
    .logit_cap = 30,
    .layer_windows = {2, {4096, 0}},
};

const struct variant variant_gemma3 = {
    .name = "gemma3",
    .paper = "Gemma Team 2025, arXiv:2503.19786",
    .about = "five layers with a window to one that sees all, with another base of rotation",
    .control = "qknorm --norm peri --ffn geglu_tanh",
    GEMMA_PARTS,
    .around = {&head_qk_norm},
    .layer_windows = {6, {1024, 1024, 1024, 1024, 1024, 0}},
    .layer_rope_base = {6, {1e4, 1e4, 1e4, 1e4, 1e4, 1e6}},
};
