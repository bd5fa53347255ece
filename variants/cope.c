/* SPDX-License-Identifier: MIT
 *
 * Contextual positions: Golovneva et al. 2024, "Contextual Position Encoding: Learning to Count
 * What's Important".
 *
 *   s_ij = (q_i . k_j + q_i . e[p_ij]) / sqrt(dh)
 *   p_ij = sum over t from j to i: sigma(q_i . k_t / sqrt(dh))
 *
 * Each query counts the keys that matter to it (term_cope.c). */
#include "variants/parts/parts.h"

const struct variant variant_cope = {
    .name = "cope",
    .paper = "Golovneva et al. 2024, arXiv:2405.18719",
    .about = "positions count the keys that the query attends to",
    .control = "nope",
    .pos = &pos_none,
    LLAMA_LAYERS,
    .around = {&term_cope},
};
