/* SPDX-License-Identifier: MIT
 *
 * Sinkhorn attention's own numbers and its blocks; sorting them, sinkhorn_sort.c. */
#pragma once

#include "content.h"

enum sort_form { SORT_RAW, SORT_LOG_RELU };
enum { MOST_BLOCKS = 1 << 14 }; /* their pairs are counted by an int */
struct sinkhorn {
    int block, iters, top;
    enum sort_form form;
    float temp;
    int noise_batch, noise; /* sequences and blocks that there is noise for; 0 = none */
};

const struct sinkhorn *sinkhorn_of(const struct config *c);

/* Blocks of L rows, and the complete ones. */
static inline int blocks(const struct config *c, int L)
{
    return (L + sinkhorn_of(c)->block - 1) / sinkhorn_of(c)->block;
}
static inline int complete(const struct config *c, int L) { return L / sinkhorn_of(c)->block; }

/* Blocks that u may be sorted from. */
static inline int sources(const struct config *c, int u, int L)
{
    return c->causal ? u : complete(c, L);
}

/* ---- sorting ------------------------------------------------------------------------------ */

/* Of one head: means of queries and keys and their gradients [n,dh], logarithms after each row step
 * and after the last step, and their gradient [n,full]. */
struct sort_room {
    double *sq, *sk, *d_sq, *d_sk, *r, *g;
};
struct sorting {
    const struct content_call *n;
    const struct sinkhorn *k;
    struct sort_room room;
    int b, h, blocks, full;
};

/* S [n, full] of a head. */
void sort_head(const struct sorting *t, float *S);

/* Given dS (.) S in t->room.g: adds to the gradients of queries and keys. */
void sort_head_grad(const struct sorting *t, const struct attn_grad *d);
