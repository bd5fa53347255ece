/* SPDX-License-Identifier: MIT
 *
 * Normed queries and keys: Henry et al. 2020, "Query-Key Normalization for Transformers", with
 * trained weights as in Qwen3 (2025, arXiv:2505.09388).
 *
 *   s_ij = Rot(i) rms(q_i) . Rot(j) rms(k_j) / sqrt(dh)
 *
 * The norm is over one head, before the rotation; its weights [dh] are shared by the heads. */
#include "variants/parts/parts.h"

const struct variant variant_qknorm = {
    .name = "qknorm",
    .paper = "Henry et al. 2020, arXiv:2010.04245",
    .about = "queries and keys normed before they are rotated",
    .control = "yarn --rope-scaling none --kv-heads 2",
    .pos = &pos_rope,
    LLAMA_LAYERS,
    .kv_heads = 2,
    .around = {&head_qk_norm},
};
