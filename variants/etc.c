/* SPDX-License-Identifier: MIT
 *
 * ETC: Ainslie et al. 2020, "ETC: Encoding Long and Structured Inputs in Transformers".
 *
 *   long_i = softmax(scale q_i . [k_g; k_j, |i - j| < window])    of all global rows and a window
 *   glob_i = softmax(scale q_i . [k_g; k_j])                      of everything
 *
 * The first rows of a text are global, the others long. Both kinds of queries have maps of their
 * own for global and for long keys and values, and a W_o. A global row reads the whole text, so
 * there is no causal form. Its relative labels are tables of distances and not part of this. */
#include "variant.h"
#include "variants/model/sublayer/sublayer.h"
#include "variants/parts/parts.h"

const struct mixer mixer_etc = {.name = "etc",
                                .numbers = &etc_numbers,
                                .kind = &sublayer_etc,
                                .attends = true,
                                .both = true,
                                .excludes = EXCLUDES(HAS_CAUSAL, HAS_SAME_LENGTH, HAS_MASKS,
                                                     HAS_LAYER_WINDOWS, HAS_ROTATED, HAS_SOFT_CAP,
                                                     HAS_ATTN_BIAS)};

const struct variant variant_etc = {
    .name = "etc",
    .paper = "Ainslie et al. 2020, arXiv:2004.08483",
    .about = "the first rows see all and are seen by all, the others a window",
    .control = "learned --direction both --ffn gelu",
    .pos = &pos_learned,
    .mem = &mem_none,
    .ffn = &ffn_gelu,
    .mixer = &mixer_etc,
    .wiring = WIRING_POST,
    .window = 84,
    .bidirectional = true,
};
