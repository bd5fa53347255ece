/* SPDX-License-Identifier: MIT
 *
 * Reformer: Kitaev et al. 2020, "Reformer: The Efficient Transformer" (equations:
 * model/content/lsh.c).
 *
 * Rows find each other by hashes of their shared queries and keys. A query sees what has its hash,
 * without the published chunks of the sorted rows, whose ends depend on later tokens. Reversible
 * layers are a way to train and left out. Each bucket of a single round is gathered for the
 * ordinary kernel; with more rounds it is given the bits of what each query sees. */
#include "variants/model/content/content.h"

const struct mixer mixer_lsh = {.name = "lsh",
                                .numbers = &lsh_numbers,
                                .kind = &sublayer_content,
                                .attends = true,
                                .content = &content_lsh};

const struct variant variant_reformer = {
    .name = "reformer",
    .paper = "Kitaev et al. 2020, arXiv:2001.04451",
    .about = "each token sees the newest tokens with its own hash",
    .control = "rope",
    .pos = &pos_rope,
    .mixer = &mixer_lsh,
    .wiring = WIRING_PRE,
    .share_qk = true,
};
