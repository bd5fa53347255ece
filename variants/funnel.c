/* SPDX-License-Identifier: MIT
 *
 * Funnel: Dai et al. 2020, "Funnel-Transformer: Filtering out Sequential Redundancy for Efficient
 * Language Processing". Layers come in blocks; in the first layer of each block after the first,
 * queries are means of two rows:
 *
 *   y = norm(h + attn(pool(h); h))
 *   z = norm(y + ffn(y))
 *
 * and the decoder's layers get, for each token, the first block's output and the newest pool group
 * that is complete at it. The published network is bidirectional; in this causal form a group is placed
 * at its last token. Attention is Transformer-XL's, distances count tokens. */
#include "variants/parts/parts.h"

/* As B4-4-4 of the paper, which has 14 layers: three blocks, alike as far as they can be, and a
 * seventh of the layers, at least one, as decoder; of three layers two blocks of one. Two layers pool
 * the embedding, as there is no block before; a single layer pools nothing. --set order has others. */
static void funnel_order(char order[MAX_ORDER], int N)
{
    const int decoder = max_int(1, N / 7), below = N - decoder, blocks = min_int(3, below);

    *order = '\0';
    if (2 * N >= MAX_ORDER)
        return; /* config_check reports it */
    if (N <= 2) {
        strcat(order, N == 1 ? "sf" : "pfuf");
        return;
    }
    for (int b = 0; b < blocks; b++)
        for (int i = 0; i < below / blocks + (b < below % blocks); i++)
            strcat(order, b && i == 0 ? "pf" : "sf");
    strcat(order, "uf");
    for (int i = 1; i < decoder; i++)
        strcat(order, "sf");
}

const struct variant variant_funnel = {
    .name = "funnel",
    .paper = "Dai et al. 2020, arXiv:2006.03236",
    .about = "blocks of layers work on means of two tokens, then of four; causal",
    .control = "xl --ffn gelu_tanh",
    .pos = &pos_xl,
    .mem = &mem_none,
    .ffn = &ffn_gelu_tanh,
    .order = funnel_order,
    .attn_bias = ATTN_BIASED,
};
