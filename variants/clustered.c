/* SPDX-License-Identifier: MIT
 *
 * Clustered attention: Vyas et al. 2020, "Fast Transformers with Clustered Attention" (equations:
 * model/content/clustered.c).
 *
 * Queries are clustered by random bits; all of a cluster have the distribution of their mean. It is
 * that of later queries, too: whole texts only. Clustering is a loop in C; the means attend on the
 * ordinary kernel. */
#include "variants/model/content/content.h"

const struct mixer mixer_clustered = {.name = "clustered",
                                      .numbers = &clustered_numbers,
                                      .kind = &sublayer_content,
                                      .attends = true,
                                      .content = &content_clustered};

const struct variant variant_clustered = {
    .name = "clustered",
    .paper = "Vyas et al. 2020, arXiv:2007.04825",
    .about = "queries of a cluster share the attention of their mean; bidirectional",
    .control = "learned --direction both --ffn gelu",
    .pos = &pos_learned,
    .mixer = &mixer_clustered,
    .ffn = &ffn_gelu,
    .bidirectional = true,
};
