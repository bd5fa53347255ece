/* SPDX-License-Identifier: MIT
 *
 * Expert prototypes: Yang et al. 2021, "M6-T: Exploring Sparse Expert Models and Beyond".
 *
 *   ffn(x) = sum over groups: p_e ffn_e(x)
 *   e      = argmax of the group
 *   p      = softmax in the group
 *
 * Four experts in two groups: each token takes the best of each (parts/ffn/moe.c). The paper's
 * capacity and auxiliary loss are left out. Attention, positions and memory are Transformer-XL's.
 */
#include "variants/parts/parts.h"

const struct variant variant_prototypes = {
    .name = "prototypes",
    .paper = "Yang et al. 2021, arXiv:2105.15082",
    .about =
        "Transformer-XL; four feed-forward networks in two groups, each token takes one of each",
    .control = "xl",
    .pos = &pos_xl,
    .ffn = &ffn_proto,
};
