/* SPDX-License-Identifier: MIT
 *
 * BERT's encoder: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for
 * Language Understanding".
 *
 *   s_ij = q_i . k_j / sqrt(dh)  for all j
 *   h_t  = E[token_t] + P[t]
 *
 * Every token sees the whole text, so there is no past to cache and no next token to predict: its
 * attention and its layers are measured. */
#include "variants/parts/parts.h"

const struct variant variant_bert = {
    .name = "bert",
    .paper = "Devlin et al. 2019, arXiv:1810.04805",
    .about = "as learned, in both directions; GELU and biases",
    .control = "learned --direction both --ffn gelu",
    .pos = &pos_learned,
    .ffn = &ffn_gelu,
    .attn_bias = ATTN_BIASED,
    .bidirectional = true,
};
