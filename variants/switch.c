/* SPDX-License-Identifier: MIT
 *
 * Switch Transformer: Fedus, Zoph and Shazeer 2021, "Switch Transformers: Scaling to Trillion
 * Parameter Models with Simple and Efficient Sparsity".
 *
 *   ffn(x) = p_e ffn_e(x),  e = argmax p,  p = softmax(W_router x)
 *
 * Each row takes the one expert that the router likes best: the parameters of E feed-forward
 * networks, the arithmetic of one. An auxiliary loss keeps the experts equally busy. The paper
 * leaves positions to T5; here they are ALiBi's, which memory needs. */
#include "variant.h"
#include "variants/parts/parts.h"

const struct variant variant_switch = {
    .name = "switch",
    .paper = "Fedus et al. 2021, arXiv:2101.03961",
    .about = "four feed-forward networks of which each token takes one",
    .pos = &pos_alibi,
    .mem = &mem_segment,
    .ffn = &ffn_moe,
    .wiring = WIRING_PRE,
};
