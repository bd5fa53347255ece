/* SPDX-License-Identifier: MIT
 *
 * Informer: Zhou et al. 2020, "Informer: Beyond Efficient Transformer for Long Sequence Time-Series
 * Forecasting" (equations: model/content/informer.c).
 *
 * Only the queries whose scores are most uneven attend; the others get the mean of the values. The
 * choice reads the whole text, and its published masked form looks ahead with it: whole texts only.
 * Measuring is a loop in C; the chosen queries attend on the ordinary kernel. */
#include "variants/model/content/content.h"

const struct mixer mixer_informer = {.name = "informer",
                                     .numbers = &informer_numbers,
                                     .kind = &sublayer_content,
                                     .attends = true,
                                     .content = &content_informer};

const struct variant variant_informer = {
    .name = "informer",
    .paper = "Zhou et al. 2020, arXiv:2012.07436",
    .about = "only the queries with the most uneven scores attend; bidirectional",
    .control = "vanilla --direction both --ffn gelu",
    .pos = &pos_sinusoid,
    .mixer = &mixer_informer,
    .ffn = &ffn_gelu,
    .bidirectional = true,
};
