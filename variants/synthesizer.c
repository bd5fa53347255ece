/* SPDX-License-Identifier: MIT
 *
 * Synthesizer: Tay et al. 2021, "Synthesizer: Rethinking Self-Attention in Transformer Models".
 *
 *   dense   s_hij = W2_h[j] . relu(W1_h x_i + b1_h) + b2_h[j]
 *   random  s_hij = table_h[i, j]
 *
 * Scores without queries and keys: computed from the query's row alone (dense), or a learned table
 * (random). Positions count from the window's start, so the window is recomputed, and none is
 * longer than the table. */
#include "variant.h"
#include "variants/model/sublayer/sublayer.h"
#include "variants/parts/parts.h"

const struct mixer mixer_synth_dense = {.name = "synth_dense",
                                        .numbers = &synthesizer_numbers,
                                        .kind = &sublayer_synthesizer,
                                        .unscaled = true,
                                        .windowed = true};
const struct mixer mixer_synth_random = {.name = "synth_random",
                                         .numbers = &synthesizer_numbers,
                                         .kind = &sublayer_synthesizer,
                                         .unscaled = true,
                                         .windowed = true};

const struct variant variant_synthesizer = {
    .name = "synthesizer",
    .paper = "Tay et al. 2021, arXiv:2005.00743",
    .about = "each token's scores of all positions from its own row, without keys",
    .control = "vanilla",
    .pos = &pos_sinusoid,
    .mem = &mem_none,
    .ffn = &ffn_relu,
    .wiring = WIRING_POST,
    .mixer = &mixer_synth_dense,
};

const struct variant variant_synthesizer_random = {
    .name = "synthesizer-random",
    .paper = "Tay et al. 2021, arXiv:2005.00743",
    .about = "scores are a learned table by position",
    .control = "vanilla",
    .pos = &pos_sinusoid,
    .mem = &mem_none,
    .ffn = &ffn_relu,
    .wiring = WIRING_POST,
    .mixer = &mixer_synth_random,
};
