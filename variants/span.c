/* SPDX-License-Identifier: MIT
 *
 * Adaptive span: Sukhbaatar et al. 2019, "Adaptive Attention Span in Transformers".
 *
 *   m_h(n) = clip((R + z_h - n) / R, 0, 1)
 *   p_ij   = m(dist) e^s_ij / sum_j m(dist) e^s_ij
 *
 * Every head learns its span: z_h tokens, and R more over which keys fade out. Keys beyond that are
 * not computed, so short spans save time. Training adds a small cost of the mean span to the loss.
 * Positions and memory are Transformer-XL's. */
#include "variants/parts/parts.h"

const struct variant variant_span = {
    .name = "span",
    .alias = "adaptive_span",
    .paper = "Sukhbaatar et al. 2019, arXiv:1905.07799",
    .about = "as xl; every head learns how far back it looks",
    AS_XL_PRE,
    .attn_extra = &extra_span,
};
