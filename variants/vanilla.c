/* SPDX-License-Identifier: MIT
 *
 * Vanilla attention: Vaswani et al. 2017, "Attention Is All You Need"; as a causal language model
 * Al-Rfou et al. 2018, "Character-Level Language Modeling with Deeper Self-Attention".
 *
 *   s_ij = q_i . k_j / sqrt(dh)
 *
 * Positions are absolute: added to the embedding (sinusoid), or a learned table added to the input
 * of every layer (learned_layer). Absolute positions are ambiguous once two segments are joined, so
 * a window that moves along a text is run again; keys and values of what has run from the first token
 * on may stay. */
#include "variants/parts/parts.h"

const struct variant variant_vanilla = {
    .name = "vanilla",
    .paper = "Vaswani et al. 2017, arXiv:1706.03762; Al-Rfou et al. 2018, arXiv:1808.04444",
    .about = "absolute positions at the input, no recurrence",
    .pos = &pos_sinusoid,
    .mem = &mem_prefix,
};
