/* SPDX-License-Identifier: MIT
 *
 * Sandwich: Press, Smith and Levy 2020, "Improving Transformer Models by Reordering their
 * Sublayers".
 *
 *   s^k (s f)^(N-k) f^k
 *
 * N attention and N feed-forward sub-layers: the bottom k are all attention, the top k all
 * feed-forward; k = 6 of N = 16 was the best, and k is the same share here, at least 1. Norms come
 * first. Attention, positions and memory are Transformer-XL's. */
#include "variants/parts/parts.h"

static void sandwich_order(char order[MAX_ORDER], int N)
{
    const int k = max_int(1, 3 * N / 8);

    *order = '\0';
    if (2 * N >= MAX_ORDER)
        return; /* config_check reports it */
    for (int i = 0; i < k; i++)
        strcat(order, "s");
    for (int i = 0; i < N - k; i++)
        strcat(order, "sf");
    for (int i = 0; i < k; i++)
        strcat(order, "f");
}

const struct variant variant_sandwich = {
    .name = "sandwich",
    .paper = "Press et al. 2020, arXiv:1911.03864",
    .about = "Transformer-XL with attention at the bottom and feed-forward on top",
    AS_XL_PRE,
    .order = sandwich_order,
};
