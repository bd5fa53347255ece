/* SPDX-License-Identifier: MIT
 *
 * Linear recurrences in chunks of keys: what forward and backward share. Inside a chunk of C keys
 * pairs (reader t, writer j) are a small matrix, everything before is in the state S_0:
 *
 *   A_xy[t,j] = sum_n x_tn y_jn exp(r_tn + e_jn)      j <= t (q without bonus), j < t (all others)
 *   own key    (I + diag(beta) A_kk) W = diag(beta) (V - (k e^G) S_0)     else W = V
 *   rank one   (I - A_ab) X = A_ak V + (a e^G') S_0                       G'_t = G_{t-1}
 *   O   = (q e^r) S_0 + A_qk W + A_qb X
 *   S_C = e^{G_C} S_0 + (k e^{G_C+e})^T W + (b e^{G_C-G})^T X
 *
 * G_t is the sum of log decays up to t, the readers' exponent is G_t (G_{t-1} for a, and for q with
 * a bonus), the writers' -G_j. A write gate adds i_j to e_j and subtracts m_t from r_t. All
 * exponents that are used are <= 0, so nothing overflows; sums of them are doubles, because a
 * float's last digits are lost in large ones. A normaliser is one more column of V, filled with
 * ones, and of S.
 *
 * Yang et al. 2024 (2312.06635), Yang et al. 2024 (2406.06484), Peng et al. 2025 (2503.14456). */
#pragma once

#include "variants/backends/recur.h"

enum { RECUR_BLOCK = 16 }; /* keys of a sub-block where channels decay by themselves */

/* One chunk of one sequence and state head, with its work space. Rows of S, V, W, X, O are ld
 * floats apart: dv values, the ones of the normaliser, zeros. */
struct chunk {
    const struct engine *g;
    const struct recur *r;
    int b, hs, t0, n; /* keys [t0, t0+n) */
    int columns;      /* dv, or dv+1 with a normaliser */
    ptrdiff_t ld;
    float *S;              /* [dk,ld] before the chunk */
    float *V, *W, *X, *O;  /* [C,ld] */
    float *q, *k, *a, *rb; /* [C,dk] operands; q comes times scale, rb is b of the rank one */
    float *A, *Ab;         /* [C,C] */
    float *x, *y;          /* [C,dk] decayed rows */
    float *w;              /* [C,g_width] decays of single keys, where channels have their own */
    float *f;              /* [dk] */
    double *G;             /* [C+1,g_width] sums of log decays, 0 before the chunk */
    double *m, *i;         /* [C+1] [C] of the write gate */
};

ptrdiff_t recur_ld(const struct recur *r);

/* A thread's work space: pieces are taken from it, or counted where there is none. */
struct room {
    char *at;
    size_t used;
};
void *room_take(struct room *room, size_t n, size_t size);

/* Bytes of a thread's chunk, and the chunk in them. */
size_t chunk_bytes(const struct recur *r);
struct chunk chunk_of(const struct engine *g, const struct recur *r, void *room);

/* The state of c->b, c->hs: from r->s0, to r->s1. */
void chunk_load_state(struct chunk *c);
void chunk_store_state(const struct chunk *c);

/* Go to keys [t0, t0+n): gather operands and decays. Then solve for W and X from S. */
void chunk_enter(struct chunk *c, int t0, int n);
void chunk_solve(struct chunk *c);
/* Gather q of a head; A of q and k, with the bonus on its diagonal, Ab of q and b. */
void chunk_query(struct chunk *c, int h);
void chunk_weights(struct chunk *c, int h);
/* O of a head, before the normaliser divides. */
void chunk_outputs(struct chunk *c, int h);
/* From the state before the chunk to the one after it. */
void chunk_leave(struct chunk *c);

/* ---- pairs -------------------------------------------------------------------------------- */

/* Which pairs count, and the exponent of a reader: keys before its own and G_{t-1}, keys before and
 * G_t, or keys up to its own and G_t. `gated`: with i and m. */
enum reads { READS_BEFORE, READS_DECAYED, READS_AFTER };

/* A[t,j] for the pairs, 0 elsewhere. */
void chunk_pairs(struct chunk *c, float *A, const float *x, const float *y, enum reads reads,
                 bool gated);
/* d_x += .., d_y += .. from the gradient of A, whose other elements are ignored and which is
 * overwritten. */
void chunk_pairs_grad(struct chunk *c, float *d_A, const float *x, const float *y, enum reads reads,
                      bool gated, float *d_x, float *d_y);
/* What a reader's row is multiplied by where it reads S_0, and a writer's where it adds to S_C: f
 * [dk], all 1 unless a chunk weighs. */
bool chunk_weighs(const struct chunk *c, bool gated);
void chunk_read_factors(const struct chunk *c, float *f, int t, enum reads reads, bool gated);
void chunk_write_factors(const struct chunk *c, float *f, int j, bool gated);
/* What S_0's rows are multiplied by on the way to S_C. */
double chunk_decay(const struct chunk *c, int x);

/* to [n,ld] = decayed readers times S. */
void chunk_read_state(struct chunk *c, float *to, const float *rows, enum reads reads, bool gated);

/* to [n,ld] += A rows, or A^T rows. */
void chunk_add_pairs(const struct chunk *c, float *to, const float *A, bool transposed,
                     const float *rows);

/* recur_chunked_grad.c */
size_t recur_chunked_grad_bytes(const struct recur *r); /* of a thread */
void recur_chunked_backward(const struct engine *g, const struct recur *r,
                            const struct recur_grad *d, void *scratch);
