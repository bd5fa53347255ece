/* SPDX-License-Identifier: MIT
 *
 * Sparse Sinkhorn attention: Tay et al. 2020, "Sparse Sinkhorn Attention" (equations:
 * model/content/sinkhorn.c).
 *
 * A block of tokens sees itself and one block of rows that is mixed from all blocks before it, with
 * weights that are normalised in turns by row and by column. Columns know the rows before them
 * only, so a token knows nothing of later ones. The mixing is a loop in C; blocks run on the
 * ordinary kernel. Places count from the window's start, so the window is recomputed. */
#include "variants/model/content/content.h"

const struct mixer mixer_sinkhorn = {.name = "sinkhorn",
                                     .numbers = &sinkhorn_numbers,
                                     .kind = &sublayer_content,
                                     .attends = true,
                                     .content = &content_sinkhorn};

const struct variant variant_sinkhorn = {
    .name = "sinkhorn",
    .paper = "Tay et al. 2020, arXiv:2002.11296",
    .about = "blocks see themselves and a sorted mixture of the blocks before them",
    .control = "vanilla --norm pre",
    .pos = &pos_sinusoid,
    .mem = &mem_none,
    .mixer = &mixer_sinkhorn,
    .wiring = WIRING_PRE,
};
