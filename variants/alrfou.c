/* SPDX-License-Identifier: MIT
 *
 * The deep character-level model of Al-Rfou et al. 2018, "Character-Level Language Modeling with
 * Deeper Self-Attention": a table of positions in every layer, no recurrence, and losses of
 * intermediate layers and of the token after the next one while it is trained (model/lm/auxiliary.h). */
#include "variants/parts/parts.h"

const struct variant variant_alrfou = {
    .name = "alrfou",
    .paper = "Al-Rfou et al. 2018, arXiv:1808.04444",
    .about = "positions in every layer; trained with losses of all layers and of two targets",
    .control = "vanilla",
    .pos = &pos_learned_layer,
    .mem = &mem_prefix,
    .aux_layers = true,
    .aux_targets = 2,
};
