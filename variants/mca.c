/* SPDX-License-Identifier: MIT
 *
 * Memory-compressed attention: Liu et al. 2018, "Generating Wikipedia by Summarizing Long
 * Sequences", section 4.2.3.
 *
 *   k'_g = b + sum_t W_t k_(gs+t)      of each head, v'_g likewise, for complete groups of s tokens
 *   o_i = softmax(scale q_i . [k_null; k'_g]) [v_null; v'_g]    over groups that end at i or before
 *
 * Groups count from the stream's beginning. Remembered are K/s rows, and those of the group that is
 * not complete. */
#include "variant.h"
#include "variants/model/sublayer/sublayer.h"
#include "variants/parts/parts.h"

const struct mixer mixer_mca = {
    .name = "mca", .numbers = &mca_numbers, .kind = &sublayer_mca, .both = true};

const struct variant variant_mca = {
    .name = "mca",
    .paper = "Liu et al. 2018, arXiv:1801.10198",
    .about = "keys and values of several tokens are convolved into one",
    .control = "vanilla",
    .pos = &pos_sinusoid,
    .mem = &mem_segment,
    .ffn = &ffn_relu,
    .mixer = &mixer_mca,
    .wiring = WIRING_POST,
};
