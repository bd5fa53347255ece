/* SPDX-License-Identifier: MIT
 *
 * Poolingformer: Zhang et al. 2021, "Poolingformer: Long Document Modeling with Pooling Attention".
 *
 *   y1 = attn1(x)        keys in a window
 *   y  = y1 + attn2(y1)  keys and values pooled over `kernel` rows, every `stride` rows, in a wider
 * one
 *
 * q, k and v of attn2 are of y1; pooling is a mean, a maximum, or a sum with trained weights. A
 * pooled row is visible where its last row is not behind the query and its first is in the window;
 * without direction (poolingformer-bi) both are in the window on their side. Each attention has its
 * W_o. */
#include "variant.h"
#include "variants/model/sublayer/sublayer.h"
#include "variants/parts/parts.h"

const struct mixer mixer_pooling = {
    .name = "pooling", .numbers = &pooling_numbers, .kind = &sublayer_pooling, .both = true};

const struct variant variant_poolingformer = {
    .name = "poolingformer",
    .paper = "Zhang et al. 2021, arXiv:2105.04371",
    .about = "a window, then pooled keys of a wider one; causal",
    .control = "vanilla --ffn gelu",
    .pos = &pos_sinusoid,
    .mem = &mem_none,
    .ffn = &ffn_gelu,
    .mixer = &mixer_pooling,
    .wiring = WIRING_POST,
};

const struct variant variant_poolingformer_bi = {
    .name = "poolingformer-bi",
    .paper = "Zhang et al. 2021, arXiv:2105.04371",
    .about = "a window, then pooled keys of a wider one",
    .control = "bert",
    .pos = &pos_learned,
    .mem = &mem_none,
    .ffn = &ffn_gelu,
    .mixer = &mixer_pooling,
    .wiring = WIRING_POST,
    .attn_bias = ATTN_BIASED,
    .bidirectional = true,
};
