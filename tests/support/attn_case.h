/* SPDX-License-Identifier: MIT
 *
 * For tests of backends: one attention with random operands that have gaps between
 * their rows and sequences, guard words around the results, scratch that starts as NaN, and the
 * bound on what rounding to float may cost. */
#ifndef ATTN_CASE_H
#define ATTN_CASE_H

#include "guarded.h"
#include "open_engine.h"
#include "variants/backends/backend.h"

#include <string.h>

enum { HAS_U = 1, HAS_W = 2, REL_K = 4, REL_V = 8, BIAS = 16, PER_HEAD = 32, LSE = 64, FULL = 128 };
enum { ALL_KEYS = 100000 };

/* Optional terms; R = ALL_KEYS stands for a row for every distance. */
struct scheme {
    int terms, R, Rf, window;
};

struct shape {
    int B, H, Hkv, L, M, dh;
};

/* The m-th further term with the t-th scheme: all pairs on small shapes, a third of them on each
 * large one. */
static inline bool in_turn(const struct shape *s, int t, int m)
{
    return s->L * (s->M + s->L) < 2000 || (t + m) % 3 == 0;
}

/* All operands of one case, random. */
struct operands {
    struct attn a;
    float *q, *k, *v, *u, *w, *rel_k, *rel_v, *bias, *o, *lse;
    size_t o_size, lse_size;
};

/* `rows` rows of n floats for each sequence: no two operands have the same distances. */
static inline struct stride with_gaps(int rows, int n, int gap)
{
    return (struct stride){.batch = rows * (n + gap) + 7 * gap, .row = n + gap};
}

static inline void make_operands(struct operands *x, const struct shape *s, const struct scheme *t)
{
    const int K = s->M + s->L, R = t->R == ALL_KEYS ? K : t->R, rows = R + t->Rf, width = s->dh;
    const bool per_head = t->terms & PER_HEAD;
    const size_t table = (size_t)(rows * width), tables = per_head ? (size_t)s->H : 1;
    const struct stride q_at = with_gaps(s->L, s->H * width, 3);
    const struct stride k_at = with_gaps(K, s->Hkv * width, 1);
    const struct stride v_at = with_gaps(K, s->Hkv * width, 2);
    const struct stride o_at = with_gaps(s->L, s->H * width, 5);

    x->q = normal((size_t)(s->B * q_at.batch), "q", 0, 1);
    x->k = normal((size_t)(s->B * k_at.batch), "k", 0, 1);
    x->v = normal((size_t)(s->B * v_at.batch), "v", 0, 1);
    x->u = normal((size_t)(s->H * width), "u", 0, 0.5f);
    x->w = normal((size_t)(s->H * width), "w", 0, 0.5f);
    x->rel_k = normal(tables * table + 1, "rel_k", 0, 1);
    x->rel_v = normal(tables * table + 1, "rel_v", 0, 1);
    x->bias = normal(tables * (size_t)rows + 1, "bias", 0, 2);
    x->o_size = (size_t)(s->B * o_at.batch);
    x->lse_size = (size_t)(s->B * s->H * s->L);
    x->o = guarded(x->o_size);
    x->lse = guarded(x->lse_size);
    x->a = (struct attn){
        .B = s->B,
        .H = s->H,
        .Hkv = s->Hkv,
        .L = s->L,
        .M = s->M,
        .dh = width,
        .window = t->window,
        .R = R,
        .Rf = t->Rf,
        .causal = !(t->terms & FULL),
        .scale = 1.0f / sqrtf((float)width),
        .q = x->q,
        .k = x->k,
        .v = x->v,
        .q_at = q_at,
        .k_at = k_at,
        .v_at = v_at,
        .o_at = o_at,
        .u = t->terms & HAS_U ? x->u : NULL,
        .w = t->terms & HAS_W ? x->w : NULL,
        .rel_k = t->terms & REL_K ? x->rel_k : NULL,
        .rel_v = t->terms & REL_V ? x->rel_v : NULL,
        .rel_head = per_head ? (ptrdiff_t)table : 0,
        .bias = t->terms & BIAS ? x->bias : NULL,
        .bias_head = per_head ? rows : 0,
        .o = x->o,
        .lse = t->terms & LSE ? x->lse : NULL,
    };
}

static inline void free_operands(struct operands *x)
{
    release(x->q), release(x->k), release(x->v), release(x->u), release(x->w);
    release(x->rel_k), release(x->rel_v), release(x->bias), release(x->o), release(x->lse);
}

/* Run with scratch of exactly the size asked for, full of NaN. */
static inline void attend(const struct engine *g, const struct attn *a)
{
    const struct attn_impl *impl;
    struct err e;

    cr_assert_eq(engine_attn(g, a, &impl, &e), OK, "%s", e.msg);
    const struct attn_need need = impl->need(a, g->threads);
    const size_t size = need.scores_bytes + need.scratch_bytes;
    unsigned char *scratch = aligned_alloc(64, round_up(size + 64, 64));
    cr_assert_not_null(scratch);
    memset(scratch, 0xff, round_up(size + 64, 64));
    impl->forward(g, a, scratch);
    for (int i = 0; i < 64; i++)
        cr_expect_eq(scratch[size + (size_t)i], 0xff, "scratch overrun");
    free(scratch);
}

/* Largest Euclidean norm of a row of n floats among `rows` rows of each of B sequences. */
static inline double widest(const float *x, int B, int rows, struct stride at, int n)
{
    double most = 0;

    for (int b = 0; b < B; b++)
        for (int r = 0; r < rows; r++) {
            double sum = 0;
            for (int e = 0; e < n; e++) {
                const double y = (double)x[b * at.batch + r * at.row + e];
                sum += y * y;
            }
            most = fmax(most, sqrt(sum));
        }
    return most;
}

/* A dot product of d terms is off by d U sum |a||b| <= d U |a| |b|, and q + u, the factor and the
 * conversion to base 2 round four more times; a table with its far row subtracted is up to twice as
 * wide. So each score, of size up to S, is off by ds, and s - max rounds relative to 2 S. exp adds
 * 4 U, so p is off by 2 ds + U (4 S + 8), sums over n keys by 2 n U; v and rel_v weigh all that. */
struct bound {
    double out, lse;
};

static inline struct bound attn_bound(const struct operands *x)
{
    const struct attn *a = &x->a;
    const int n = a->M + a->L, d = a->dh, rows = a->R + a->Rf;
    const int tables = a->rel_head ? a->H : 1;
    const struct stride row = {.row = d}, one = {.row = 1};
    const double q = widest(a->q, a->B, a->L, a->q_at, a->H * d);
    const double u = widest(x->u, 1, a->H, row, d), w = widest(x->w, 1, a->H, row, d);
    double S = (q + u) * widest(a->k, a->B, n, a->k_at, a->Hkv * d);
    double v = widest(a->v, a->B, n, a->v_at, a->Hkv * d), bias = 0;

    if (a->rel_k)
        S += 2 * (q + w) * widest(a->rel_k, 1, tables * rows, row, d);
    if (a->rel_v)
        v += 2 * widest(a->rel_v, 1, tables * rows, row, d);
    if (a->bias)
        bias = widest(a->bias, 1, (a->bias_head ? a->H : 1) * rows, one, 1);
    S = fabs((double)a->scale) * S + bias;
    const double ds = U * (d + 8) * S, p = 2 * ds + U * (4 * S + 8);
    return (struct bound){.out = v * (p + U * (2 * n + 8)), .lse = p + U * (2 * S + n + 16)};
}

#endif
