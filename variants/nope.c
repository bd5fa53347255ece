/* SPDX-License-Identifier: MIT
 *
 * No positions: Kazemnejad et al. 2023, "The Impact of Positional Encoding on Length Generalization
 * in Transformers".
 *
 *   s_ij = q_i . k_j / sqrt(dh)
 *
 * Only the causal mask tells positions apart. */
#include "variants/parts/parts.h"

const struct variant variant_nope = {
    .name = "nope",
    .paper = "Kazemnejad et al. 2023, arXiv:2305.19466",
    .about = "no positions: only the causal mask orders tokens",
    .control = "yarn --rope-scaling none",
    .pos = &pos_none,
    LLAMA_LAYERS,
};
