/* SPDX-License-Identifier: MIT
 *
 * DeBERTa's disentangled attention: He et al. 2021, "DeBERTa: Decoding-enhanced BERT with
 * Disentangled Attention", section 3.1, for a decoder.
 *
 *   s_ij = (q_i . k_j + q_i . W_pk E[d(dist)] + k_j . W_pq E[d(-dist)]) / sqrt(3 dh)
 *   d(n) = clip(n + c, 0, 2c - 1)
 *
 * Content attends to positions and positions to content. E is a table of 2c embeddings per layer;
 * both maps are per layer. The authors' program also uses E[d(dist)] in the last term. */
#include "variants/parts/parts.h"

const struct variant variant_deberta = {
    .name = "deberta",
    .paper = "He et al. 2021, arXiv:2006.03654",
    .about = "content-to-position and position-to-content scores",
    .control = "vanilla",
    .pos = &pos_deberta,
    .products = 3,
};
