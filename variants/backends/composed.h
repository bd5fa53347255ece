/* SPDX-License-Identifier: MIT
 *
 * Attention composed of a backend's own matrix products and row operations: the implementation of
 * the libraries that have no fused attention. Below it, what its two halves share. */
#ifndef COMPOSED_H
#define COMPOSED_H

#include "backend.h"

extern const struct attn_impl attn_composed;

/* Its backward half serves every implementation that has none of its own. */
struct attn_need composed_need_backward(const struct attn *a, int threads);
void composed_backward(const struct engine *g, const struct attn *a, const struct attn_grad *d,
                       void *scratch);

/* ---- one row block ------------------------------------------------------------------------ */

struct block_at {
    int b, h, kv;  /* sequence, head, its key head */
    int i0, n;     /* first query, queries */
    int j0, cols;  /* first key that any row sees, keys up to the last one's */
    int r0, n_rel; /* table rows that the block's distances use */
    int shift;     /* key j of row i has table row clamp(j + shift - i, 0, n_rel-1), from j0, r0 */
};
struct space {
    float *s; /* [n, composed_ld(K)] scores */
    float *g; /* [n, composed_ld(R+Rf)] scores against the table, or weights per table row */
    float *q; /* [n, composed_query_ld] q + u, then q + w */
};

int composed_rows(const struct attn *a); /* of a block; the last one may have fewer */
int composed_blocks(const struct attn *a);
ptrdiff_t composed_ld(int n); /* floats from row to row of n */
ptrdiff_t composed_query_ld(const struct attn *a);
struct block_at composed_locate(const struct attn *a, int b, int h, int block);

/* The block's queries, with add [H,dh] in `work` where there is one. */
const float *composed_queries(const struct attn *a, const struct block_at *at, const float *add,
                              float *work, ptrdiff_t *ld);

/* Fill sp->s with the block's probabilities, 0 where masked. */
void composed_probabilities(const struct engine *g, const struct attn *a, const struct block_at *at,
                            const struct space *sp, float *lse);

/* w[i][r] = sum of p[i][j] over the keys whose table row is r0 + r. Inside the table each key has a
 * row of its own: a copy. The keys beyond either end share the end's row: a sum. */
void composed_sum_by_row(const struct block_at *at, const float *p, ptrdiff_t ld, float *w,
                         ptrdiff_t w_ld);

#endif
