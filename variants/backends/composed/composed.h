/* SPDX-License-Identifier: MIT
 *
 * Attention composed of a backend's own matrix products and row operations: for libraries without
 * fused attention, and for every term that fused kernels do not support. Below: what its parts
 * share. */
#pragma once

#include "variants/backends/backend.h"

extern const struct attn_impl attn_composed;

/* Its backward pass serves every implementation that has none of its own. */
struct attn_need composed_need_backward(const struct attn *a, int threads);
void composed_backward(const struct engine *g, const struct attn *a, const struct attn_grad *d,
                       void *scratch);

/* ---- one row block ------------------------------------------------------------------------ */

struct block_at {
    int b, h, kv;       /* sequence, head, its key/value head */
    int i0, n;          /* first query, number of queries */
    int j0, cols;       /* first key that any row sees, number of keys to the last one seen */
    int r0, n_rel;      /* table rows that the block's distances use */
    int shift;          /* key j of row i has table row clamp(j k_step + shift - i q_step, 0, */
    int q_step, k_step; /* n_rel-1), counted from j0, r0; steps are 1 unless positions are pooled */
    bool
        holes; /* keys or values that no row sees are no numbers, and 0 times them would not be 0 */
};

/* Advance r over keys of the block, counted from j0, that products with them may read: all but the
 * holes. Start with a zeroed range. */
bool composed_next_keys(const struct attn *a, const struct block_at *at, struct range *r);

/* x [rows, n] = 0, to which products are added key by key. */
void composed_zero_rows(float *x, ptrdiff_t ld, int rows, int n);

/* Score matrices of the heads that are computed together: rows composed_ld apart, columns of sinks
 * after those of keys, `square` floats between heads. Where heads do not mix, s, p and w are the
 * same. */
struct space {
    float *s; /* [heads] scores before mixing */
    float *p; /* [heads] probabilities before mixing */
    float *w; /* [heads] probabilities after mixing, the weights of the values; may be s */
    float *g; /* [n, composed_table_ld] scores against the table, or weights per table row */
    float *q; /* [n, composed_query_ld] q + u, then q + w */
    /* [heads] cap' of the scores, or what `weigh` keeps, for backward; NULL = not wanted */
    float *slope;
    double *row; /* [3, composed_score_ld] of one query, where there is `weigh` */
};

static inline float *composed_slope(const struct space *sp, ptrdiff_t at)
{
    return sp->slope ? sp->slope + at : NULL;
}

/* Floats of the rows in double that `weigh` reads and writes: weights, what is kept, gradients. */
size_t composed_row_floats(const struct attn *a);

int composed_team(const struct attn *a); /* heads that are computed together */
int composed_rows(const struct attn *a); /* of a block; the last block may have fewer */
int composed_blocks(const struct attn *a);
ptrdiff_t composed_ld(int n); /* row stride in floats of a matrix with n columns */
ptrdiff_t composed_score_ld(const struct attn *a);
ptrdiff_t composed_square(const struct attn *a);
ptrdiff_t composed_query_ld(const struct attn *a);
ptrdiff_t composed_table_ld(const struct attn *a);

/* Block of the team that begins at head h. composed_of_head: the same block for another head of the
 * team; composed_part: `cols` of its keys from the block's key j on. */
struct block_at composed_locate(const struct attn *a, int b, int h, int block);
struct block_at composed_of_head(const struct attn *a, const struct block_at *at, int h);
struct block_at composed_part(const struct attn *a, const struct block_at *at, int j, int cols);

/* Table row of the block's key j for its row i, counted from r0. */
static inline int composed_table_row(const struct block_at *at, int i, int j)
{
    return clamp_int(j * at->k_step + at->shift - i * at->q_step, 0, at->n_rel - 1);
}

/* Offsets of a block's rows and keys in an operand whose heads are `width` wide. */
static inline ptrdiff_t composed_query_at(const struct block_at *at, struct stride s, int width)
{
    return at->b * s.batch + at->i0 * s.row + (ptrdiff_t)at->h * width;
}
static inline ptrdiff_t composed_key_at(const struct block_at *at, struct stride s, int width)
{
    return at->b * s.batch + at->j0 * s.row + (ptrdiff_t)at->kv * width;
}

/* The block's queries; with `add` [H,dh] given, queries + add, in `work`. */
const float *composed_queries(const struct attn *a, const struct block_at *at, const float *add,
                              float *work, ptrdiff_t *ld);

/* dst [n, cols] = scale (q + add) keys^T for a block's queries. */
void composed_scores(const struct engine *g, const struct attn *a, const struct block_at *at,
                     const float *add, const float *keys, ptrdiff_t key_ld, int cols, float *dst,
                     ptrdiff_t ld, float *work);

/* Fill s, p and w of the block's team; w is 0 where masked. Writes lse and scores_out if `a` has
 * them. */
void composed_weights(const struct engine *g, const struct attn *a, const struct block_at *at,
                      const struct space *sp);

/* Likewise with all terms; composed_weights calls it if `a` has more than plain terms. */
bool composed_plain(const struct attn *a);
void composed_all_weights(const struct engine *g, const struct attn *a, const struct block_at *at,
                          const struct space *sp);

/* s[i][j] += table[row of i, j] for one row i. */
void composed_add_by_row(const struct block_at *at, int i, float *s, const float *table);

/* w[i][r] = sum of p[i][j] over the keys whose table row is r0 + r. Inside the table each key has
 * its own row: a copy. Keys beyond either end share the end's row: a sum. */
void composed_sum_by_row(const struct block_at *at, const float *p, ptrdiff_t ld, float *w,
                         ptrdiff_t w_ld);

/* to[g] = sum over h of matrix[g][h] from[h], or of matrix[h][g] if transposed, for the block's
 * rows and `cols` columns of all heads; a copy if there is no matrix. */
void composed_mix(const struct attn *a, const struct block_at *at, const float *matrix,
                  bool transposed, float *to, const float *from, int cols);
