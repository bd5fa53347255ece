/* SPDX-License-Identifier: MIT
 *
 * All-attention: Sukhbaatar et al. 2019, "Augmenting Self-attention with Persistent Memory".
 *
 *   o_i = sum_j p_ij v_j + sum_n p_in pers_v[n]
 *   p_i = softmax over s_ij and (q_i + u) . pers_k[n] / sqrt(dh)
 *
 * Trained keys and values, as many as a feed-forward network would have hidden units, join every
 * softmax and replace the feed-forward network: layers consist of attention only. Positions and
 * memory are Transformer-XL's. */
#include "variants/parts/parts.h"

static void all_attention_order(char order[MAX_ORDER], int N)
{
    if (N > (MAX_ORDER - 1) / 2)
        N = 0;
    memset(order, SUB_ATTENTION, (size_t)N);
    order[N] = '\0';
}

const struct variant variant_all_attention = {
    .name = "all-attention",
    .alias = "all_attention",
    .paper = "Sukhbaatar et al. 2019, arXiv:1907.01470",
    .about = "as xl; learned keys and values replace the feed-forward network",
    AS_XL_PRE,
    .order = all_attention_order,
    .attn_extra = &extra_persistent,
};
