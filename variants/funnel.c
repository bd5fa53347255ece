/* SPDX-License-Identifier: MIT
 *
 * Funnel: Dai et al. 2020, "Funnel-Transformer: Filtering out Sequential Redundancy for Efficient
 * Language Processing". In the layers after the first, queries are means of two rows:
 *
 *   y = norm(h + attn(pool(h); h))
 *   z = norm(y + ffn(y))
 *
 * and the last layer gets, for each token, the first layer's output and the newest pool group that
 * is complete at it. The published network is bidirectional; in this causal form a group is placed
 * at its last token. Attention is Transformer-XL's, distances count tokens. */
#include "variant.h"
#include "variants/parts/parts.h"

#include <string.h>

/* One layer of tokens below and one on top of those that work on pool groups: of two tokens, in
 * deep models the upper half of four. Two layers leave one on top; a single layer pools nothing. */
static void funnel_order(char order[MAX_ORDER], int N)
{
    const int below = N > 2, cells = N - 1 - below;

    *order = '\0';
    if (2 * N >= MAX_ORDER)
        return; /* config_check reports it */
    if (N == 1 || below)
        strcat(order, "sf");
    for (int i = 0; i < cells; i++)
        strcat(order, i == 0 || (cells >= 4 && i == cells / 2) ? "pf" : "sf");
    if (N > 1)
        strcat(order, "uf");
}

const struct variant variant_funnel = {
    .name = "funnel",
    .paper = "Dai et al. 2020, arXiv:2006.03236",
    .about = "middle layers work on means of two tokens; causal",
    .control = "xl --ffn gelu_tanh",
    .pos = &pos_xl,
    .mem = &mem_none,
    .ffn = &ffn_gelu_tanh,
    .wiring = WIRING_POST,
    .order = funnel_order,
    .attn_bias = true,
};
