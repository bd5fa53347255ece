/* SPDX-License-Identifier: MIT
 *
 * Talking heads: Shazeer et al. 2020, "Talking-Heads Attention".
 *
 *   s_g = sum_h mix_logits[g,h] s_h
 *   p_g = sum_h mix_probs[g,h] softmax(s_h)
 *
 * Two matrices, initially near the identity, mix the heads before and after the softmax. Positions
 * and memory are Transformer-XL's. */
#include "variants/parts/parts.h"

const struct variant variant_talking = {
    .name = "talking",
    .alias = "talking_heads",
    .paper = "Shazeer et al. 2020, arXiv:2003.02436",
    .about = "as xl; heads are mixed before and after the softmax",
    .control = "xl",
    .pos = &pos_xl,
    .attn_extra = &extra_talking,
};
