/* SPDX-License-Identifier: MIT
 *
 * Switch Transformer: Fedus, Zoph and Shazeer 2021, "Switch Transformers: Scaling to Trillion
 * Parameter Models with Simple and Efficient Sparsity".
 *
 *   ffn(x) = p_e ffn_e(x)
 *   e      = argmax p
 *   p      = softmax(W_router x)
 *
 * The router sends each row to the expert with the largest p: the parameters of E feed-forward
 * networks, the arithmetic of one. An auxiliary loss balances the experts. The paper uses T5's
 * positions; here they are ALiBi's, as memory requires. */
#include "variants/parts/parts.h"

const struct variant variant_switch = {
    .name = "switch",
    .paper = "Fedus et al. 2021, arXiv:2101.03961",
    .about = "four feed-forward networks, one per token",
    .control = "alibi --norm pre",
    .pos = &pos_alibi,
    .ffn = &ffn_moe,
    .wiring = WIRING_PRE,
};
