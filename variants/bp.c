/* SPDX-License-Identifier: MIT
 *
 * BP-Transformer: Ye et al. 2019, "BP-Transformer: Modelling Long-Range Context via Binary
 * Partitioning".
 *
 * Keys are tokens and, on level l, means of 2^l aligned tokens. A query sees its k newest tokens,
 * behind them k nodes of two tokens, then k of four, and so on, one more of a level where the rest
 * would be odd: every token before it is in exactly one visible node, and there are about
 * (k + 1/2) log2(i / k) of them. A node's key and value are means of its tokens' keys and values;
 * the published nodes have states of their own from layer to layer. */
#include "variant.h"
#include "variants/model/sublayer/sublayer.h"
#include "variants/parts/parts.h"

const struct mixer mixer_tree = {.name = "tree", .numbers = &tree_numbers, .kind = &sublayer_tree};

const struct variant variant_bp = {
    .name = "bp",
    .paper = "Ye et al. 2019, arXiv:1911.04070",
    .about = "keys are tokens near by and means of ever longer spans farther away",
    .control = "vanilla",
    .pos = &pos_sinusoid,
    .mem = &mem_segment,
    .ffn = &ffn_relu,
    .mixer = &mixer_tree,
    .wiring = WIRING_POST,
};
