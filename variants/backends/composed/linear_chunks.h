/* SPDX-License-Identifier: MIT
 *
 * What forward and backward of chunked attention without softmax share. */
#ifndef LINEAR_CHUNKS_H
#define LINEAR_CHUNKS_H

#include "linear_attn.h"

/* Per thread; rows of S, v, o, d_S are linear_ld floats apart: d+1 elements, then zeros. */
struct linear_space {
    float *S;   /* [m,ld] state before the chunk, z in its last column */
    float *v;   /* [c,ld] values of the chunk, 1 in the last column */
    float *o;   /* [c,ld] num and den of its queries; backward: e and f */
    float *w;   /* [c,c] weights of the pairs inside the chunk */
    float *d_w; /* [c,c] backward only, their gradients */
    float *d_S; /* [m,ld] backward only, that of the state after the chunk */
};

/* One sequence and key head: offsets of its first rows of keys and values, and the index of its
 * state. */
struct linear_item {
    int b, kv;
    ptrdiff_t k, v, state;
};

ptrdiff_t linear_ld(const struct linear_attn *a);
struct linear_space linear_space_of(const struct linear_attn *a, void *scratch, bool backward);
struct linear_item linear_item_of(const struct linear_attn *a, int item);

/* Row of query i of head h in fq, o and den. */
static inline ptrdiff_t linear_query(const struct linear_attn *a, int b, int i, int h)
{
    return ((ptrdiff_t)b * a->L + i) * a->H + h;
}

void linear_load_state(const struct linear_attn *a, const struct linear_item *t, float *S);
/* v' = [v 1] of keys [j, j+n). */
void linear_load_values(const struct linear_attn *a, const struct linear_item *t, float *v, int j,
                        int n);
/* S' += fk^T v' for these keys. */
void linear_add_keys(const struct engine *g, const struct linear_attn *a,
                     const struct linear_item *t, const struct linear_space *sp, int j, int n);
/* Likewise all keys before the queries'. */
void linear_add_memory(const struct engine *g, const struct linear_attn *a,
                       const struct linear_item *t, const struct linear_space *sp);
/* w [n,n] = tril(fq fk^T) for queries [i, i+n) of head h. */
void linear_weights(const struct engine *g, const struct linear_attn *a,
                    const struct linear_item *t, const struct linear_space *sp, int h, int i,
                    int n);
/* w [n,n] = tril(w) */
void linear_mask(float *w, int n);

void linear_chunked_backward(const struct engine *g, const struct linear_attn *a,
                             const struct linear_grad *d, void *scratch);

#endif
