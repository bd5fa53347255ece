/* SPDX-License-Identifier: MIT
 *
 * Collaborative heads: Cordonnier, Loukas and Jaggi 2020, "Multi-Head Attention: Collaborate
 * Instead of Concatenate".
 *
 *   s_hij = sum_e q_ie m_he k_je / sqrt(Dk / H)
 *
 * All heads have the same queries and keys of Dk coordinates, here half of what heads have
 * together, and weigh them differently; values are of each head. So the cache holds Dk + H d
 * numbers per token. Equations: variants/model/attention/sublayer_collab.c. */
#include "variant.h"
#include "variants/model/sublayer/sublayer.h"
#include "variants/parts/collab.h"

const struct mixer mixer_collab = {
    .name = "collab",
    .numbers = &collab_numbers,
    .kind = &sublayer_collab,
    .attends = true,
    .excludes = EXCLUDES(HAS_MASKS_OF_HEADS, HAS_ROTATED, HAS_NO_CONTENT, HAS_GROUPS)};

const struct variant variant_collaborative = {
    .name = "collaborative",
    .paper = "Cordonnier et al. 2020, arXiv:2006.16362",
    .about = "heads weigh the coordinates of shared queries and keys",
    .control = "vanilla",
    .pos = &pos_none,
    .mem = &mem_segment,
    .mixer = &mixer_collab,
    .ffn = &ffn_relu,
    .wiring = WIRING_POST,
};
