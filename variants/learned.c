/* SPDX-License-Identifier: MIT
 *
 * Learned absolute positions: Radford et al. 2018, "Improving Language Understanding by Generative
 * Pre-Training", after Gehring et al. 2017.
 *
 *   s_ij = q_i . k_j / sqrt(dh)
 *   h_t  = E[token_t] + P[t]
 *
 * As vanilla, with a trained table instead of sinusoids. Positions count from the start of the
 * window, so there is no memory, and no window longer than the table. */
#include "variants/parts/parts.h"

const struct variant variant_learned = {
    .name = "learned",
    .paper = "Radford et al. 2018; Gehring et al. 2017, arXiv:1705.03122",
    .about = "a learned table of positions at the input, no recurrence",
    .control = "vanilla",
    .pos = &pos_learned,
    .mem = &mem_prefix,
};
