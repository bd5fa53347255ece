/* SPDX-License-Identifier: MIT
 *
 * What the files of one layer, declaration, forward and backward, share. */
#ifndef BLOCK_INNER_H
#define BLOCK_INNER_H

#include "block.h"

/* Parameters of attention, in the order they are added. Biases exist where attn_bias is set. */
enum { ATTN_Q, ATTN_K, ATTN_V, ATTN_O, ATTN_WEIGHTS };

/* Rows of every sequence: [B, rows, n] with `stride` floats between sequences. */
struct rows {
    float *at;
    ptrdiff_t stride;
};

/* Rows of memory that the layer holds now. */
int block_memory(const struct block *b, enum mem_kind kind);

/* The attention that block_project has prepared: operands, results and the tables cut to size. */
struct attn block_operands(const struct block *b, enum mem_kind kind, const struct work *w, int B,
                           int L);

#endif
