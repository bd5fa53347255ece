/* SPDX-License-Identifier: MIT
 *
 * The backward half of composed attention, in the forward's row blocks. Per block, P computed
 * again:
 *
 *   D = dO V^T (+ shift(dO rel_v^T))      G = P (D - rowsum(P D))        one row operation
 *   dV += P^T dO                          dK += scale G^T (Q + u)
 *   dQ  = scale (G K + W rel_k)           W[i][r] = sum of G over the keys that share row r
 *   drel_k += scale W^T (Q + w)           drel_v += (the same sum of P)^T dO
 *
 * Items are (sequence, key head): one thread adds up a head's dK and dV in place, block after
 * block. The terms' gradients are kept per (sequence, head) and summed in that order at the end. */
#include "composed.h"

#include <omp.h>
#include <string.h>

/* ---- work space --------------------------------------------------------------------------- */

/* One thread's: the forward's, and a second square. g is used for sums of P, then of G. */
struct grad_space {
    struct space forward;
    float *d; /* [n, ld] gradients of probabilities, then of scores */
};

/* Gradients of the terms from one (sequence, head), one behind the other; NULL where `a` has none.
 */
struct terms {
    float *rel_k, *rel_v, *bias, *u, *w; /* [rows,dh] [rows,dh] [rows] [dh] [dh] */
};

static int table_rows(const struct attn *a) { return a->R + a->Rf; }

static ptrdiff_t table_ld(const struct attn *a)
{
    return table_rows(a) ? composed_ld(table_rows(a)) : 0;
}

static size_t scores_floats(const struct attn *a)
{
    return 2 * (size_t)composed_rows(a) * (size_t)composed_ld(a->M + a->L);
}

static size_t space_floats(const struct attn *a)
{
    return (size_t)composed_rows(a) * (size_t)(table_ld(a) + composed_query_ld(a));
}

static struct terms terms_at(const struct attn *a, float *at)
{
    const ptrdiff_t table = (ptrdiff_t)table_rows(a) * a->dh;
    struct terms t = {0};

    t.u = at;
    t.w = at += a->dh;
    at += a->dh;
    if (a->rel_k) {
        t.rel_k = at;
        at += table;
    }
    if (a->rel_v) {
        t.rel_v = at;
        at += table;
    }
    if (a->bias)
        t.bias = at;
    return t;
}

static size_t terms_floats(const struct attn *a)
{
    const size_t rows = (size_t)table_rows(a), dh = (size_t)a->dh;

    return round_up(2 * dh + (a->rel_k ? rows * dh : 0) + (a->rel_v ? rows * dh : 0) +
                        (a->bias ? rows : 0),
                    16);
}

struct attn_need composed_need_backward(const struct attn *a, int threads)
{
    const size_t n = (size_t)threads, heads = (size_t)a->B * (size_t)a->H;

    return (struct attn_need){
        .scores_bytes = n * scores_floats(a) * sizeof(float),
        .scratch_bytes = (n * space_floats(a) + heads * terms_floats(a)) * sizeof(float),
    };
}

static struct grad_space space_of(const struct attn *a, int threads, int thread, float *scratch)
{
    const ptrdiff_t rows = composed_rows(a), square = (ptrdiff_t)scores_floats(a) / 2;
    float *s = scratch + thread * 2 * square;
    float *rest = scratch + threads * 2 * square + thread * (ptrdiff_t)space_floats(a);

    return (struct grad_space){.forward = {.s = s, .g = rest, .q = rest + rows * table_ld(a)},
                               .d = s + square};
}

/* ---- one block ---------------------------------------------------------------------------- */

/* dst [n] += column sums of x [rows, n]. */
static void add_columns(float *dst, const float *x, ptrdiff_t ld, int rows, int n)
{
    CHECK(dst);
    for (int i = 0; i < rows; i++)
        for (int e = 0; e < n; e++)
            dst[e] += x[i * ld + e];
}

static void add_rows(float *dst, ptrdiff_t ld, const float *x, ptrdiff_t x_ld, int rows, int n)
{
    for (int i = 0; i < rows; i++)
        for (int e = 0; e < n; e++)
            dst[i * ld + e] += x[i * x_ld + e];
}

static void value_grad(const struct engine *g, const struct attn *a, const struct attn_grad *d,
                       const struct block_at *at, const struct grad_space *sp,
                       const struct terms *t)
{
    const ptrdiff_t ld = composed_ld(a->M + a->L), g_ld = table_ld(a);
    const ptrdiff_t v_at = at->b * a->v_at.batch + at->j0 * a->v_at.row + (ptrdiff_t)at->kv * a->dh;
    const float *d_o =
        d->d_o + at->b * a->o_at.batch + at->i0 * a->o_at.row + (ptrdiff_t)at->h * a->dh;

    g->ops.gemm(&(struct gemm){.ta = true,
                               .m = at->cols,
                               .n = a->dh,
                               .k = at->n,
                               .alpha = 1,
                               .beta = 1,
                               .a = sp->forward.s,
                               .lda = ld,
                               .b = d_o,
                               .ldb = a->o_at.row,
                               .c = d->d_v + v_at,
                               .ldc = a->v_at.row,
                               .threads = 1});
    g->ops.gemm(&(struct gemm){.tb = true,
                               .m = at->n,
                               .n = at->cols,
                               .k = a->dh,
                               .alpha = 1,
                               .a = d_o,
                               .lda = a->o_at.row,
                               .b = a->v + v_at,
                               .ldb = a->v_at.row,
                               .c = sp->d,
                               .ldc = ld,
                               .threads = 1});
    if (a->rel_v) {
        const ptrdiff_t row = (ptrdiff_t)at->r0 * a->dh;
        composed_sum_by_row(at, sp->forward.s, ld, sp->forward.g, g_ld);
        g->ops.gemm(&(struct gemm){.ta = true,
                                   .m = at->n_rel,
                                   .n = a->dh,
                                   .k = at->n,
                                   .alpha = 1,
                                   .beta = 1,
                                   .a = sp->forward.g,
                                   .lda = g_ld,
                                   .b = d_o,
                                   .ldb = a->o_at.row,
                                   .c = t->rel_v + row,
                                   .ldc = a->dh,
                                   .threads = 1});
        g->ops.gemm(&(struct gemm){.tb = true,
                                   .m = at->n,
                                   .n = at->n_rel,
                                   .k = a->dh,
                                   .alpha = 1,
                                   .a = d_o,
                                   .lda = a->o_at.row,
                                   .b = a->rel_v + at->h * a->rel_head + row,
                                   .ldb = a->dh,
                                   .c = sp->forward.g,
                                   .ldc = g_ld,
                                   .threads = 1});
    }
    g->ops.softmax_grad(&(struct softmax_grad){.d = sp->d,
                                               .p = sp->forward.s,
                                               .ld = ld,
                                               .rows = at->n,
                                               .cols = at->cols,
                                               .rel = a->rel_v ? sp->forward.g : NULL,
                                               .rel_ld = g_ld,
                                               .n_rel = at->n_rel,
                                               .shift = at->shift,
                                               .threads = 1});
}

static void content_grad(const struct engine *g, const struct attn *a, const struct attn_grad *d,
                         const struct block_at *at, const struct grad_space *sp,
                         const struct terms *t)
{
    const ptrdiff_t ld = composed_ld(a->M + a->L);
    const ptrdiff_t k_at = at->b * a->k_at.batch + at->j0 * a->k_at.row + (ptrdiff_t)at->kv * a->dh;
    float *d_q = d->d_q + at->b * a->q_at.batch + at->i0 * a->q_at.row + (ptrdiff_t)at->h * a->dh;
    ptrdiff_t q_ld;
    const float *q = composed_queries(a, at, a->u, sp->forward.q, &q_ld);

    g->ops.gemm(&(struct gemm){.ta = true,
                               .m = at->cols,
                               .n = a->dh,
                               .k = at->n,
                               .alpha = a->scale,
                               .beta = 1,
                               .a = sp->d,
                               .lda = ld,
                               .b = q,
                               .ldb = q_ld,
                               .c = d->d_k + k_at,
                               .ldc = a->k_at.row,
                               .threads = 1});
    g->ops.gemm(&(struct gemm){.m = at->n,
                               .n = a->dh,
                               .k = at->cols,
                               .alpha = a->scale,
                               .a = sp->d,
                               .lda = ld,
                               .b = a->k + k_at,
                               .ldb = a->k_at.row,
                               .c = d_q,
                               .ldc = a->q_at.row,
                               .threads = 1});
    add_columns(t->u, d_q, a->q_at.row, at->n, a->dh);
}

static void position_grad(const struct engine *g, const struct attn *a, const struct attn_grad *d,
                          const struct block_at *at, const struct grad_space *sp,
                          const struct terms *t)
{
    const ptrdiff_t ld = composed_ld(a->M + a->L), g_ld = table_ld(a);
    const ptrdiff_t row = (ptrdiff_t)at->r0 * a->dh, w_ld = composed_query_ld(a);
    float *d_q = d->d_q + at->b * a->q_at.batch + at->i0 * a->q_at.row + (ptrdiff_t)at->h * a->dh;
    float *sums = sp->forward.g, *work = sp->forward.q;
    ptrdiff_t q_ld;

    composed_sum_by_row(at, sp->d, ld, sums, g_ld);
    if (a->bias)
        add_columns(t->bias + at->r0, sums, g_ld, at->n, at->n_rel);
    if (!a->rel_k)
        return;
    const float *q = composed_queries(a, at, a->w, work, &q_ld);
    g->ops.gemm(&(struct gemm){.ta = true,
                               .m = at->n_rel,
                               .n = a->dh,
                               .k = at->n,
                               .alpha = a->scale,
                               .beta = 1,
                               .a = sums,
                               .lda = g_ld,
                               .b = q,
                               .ldb = q_ld,
                               .c = t->rel_k + row,
                               .ldc = a->dh,
                               .threads = 1});
    g->ops.gemm(&(struct gemm){.m = at->n,
                               .n = a->dh,
                               .k = at->n_rel,
                               .alpha = a->scale,
                               .a = sums,
                               .lda = g_ld,
                               .b = a->rel_k + at->h * a->rel_head + row,
                               .ldb = a->dh,
                               .c = work,
                               .ldc = w_ld,
                               .threads = 1});
    add_columns(t->w, work, w_ld, at->n, a->dh);
    add_rows(d_q, a->q_at.row, work, w_ld, at->n, a->dh);
}

/* ---- one key head, then all --------------------------------------------------------------- */

static void zero_head(float *x, struct stride at, int b, int head, int rows, int dh)
{
    for (int j = 0; j < rows; j++)
        memset(x + b * at.batch + j * at.row + (ptrdiff_t)head * dh, 0, sizeof(float) * (size_t)dh);
}

static void run_item(const struct engine *g, const struct attn *a, const struct attn_grad *d, int b,
                     int kv, const struct grad_space *sp, float *all)
{
    const int group = a->H / a->Hkv, n_blocks = composed_blocks(a);

    zero_head(d->d_k, a->k_at, b, kv, a->M + a->L, a->dh);
    zero_head(d->d_v, a->v_at, b, kv, a->M + a->L, a->dh);
    for (int h = kv * group; h < (kv + 1) * group; h++) {
        float *mine = all + (size_t)(b * a->H + h) * terms_floats(a);
        const struct terms t = terms_at(a, mine);
        memset(mine, 0, sizeof(float) * terms_floats(a));
        for (int block = 0; block < n_blocks; block++) {
            const struct block_at at = composed_locate(a, b, h, block);
            composed_probabilities(g, a, &at, &sp->forward, NULL);
            value_grad(g, a, d, &at, sp, &t);
            content_grad(g, a, d, &at, sp, &t);
            if (a->rel_k || a->bias)
                position_grad(g, a, d, &at, sp, &t);
        }
    }
}

/* dst [H or 1, n] (heads `head` floats apart) += the terms at `from` of every sequence and head,
 * which are added up in the first of them. */
static void sum_terms(const struct engine *g, const struct attn *a, float *dst, ptrdiff_t head,
                      float *from, int n)
{
    const size_t each = terms_floats(a);
    const int owners = head ? a->H : 1, sharing = head ? 1 : a->H;

    if (!dst || !from)
        return;
#pragma omp parallel for num_threads(g->threads)
    for (int h = 0; h < owners; h++) {
        float *sum = from + (size_t)h * each;
        for (int other = 1; other < a->B * sharing; other++) {
            const float *x = sum + (size_t)(other / sharing * a->H + other % sharing) * each;
            for (int e = 0; e < n; e++)
                sum[e] += x[e];
        }
        for (int e = 0; e < n; e++)
            dst[h * head + e] += sum[e];
    }
}

void composed_backward(const struct engine *g, const struct attn *a, const struct attn_grad *d,
                       void *scratch)
{
    const size_t threads = (size_t)g->threads;
    float *all = (float *)scratch + threads * (scores_floats(a) + space_floats(a));

#pragma omp parallel for schedule(dynamic, 1) num_threads(g->threads)
    for (int item = 0; item < a->B * a->Hkv; item++) {
        const struct grad_space sp = space_of(a, g->threads, omp_get_thread_num(), scratch);
        run_item(g, a, d, item / a->Hkv, item % a->Hkv, &sp, all);
    }
    const struct terms t = terms_at(a, all);
    const int rows = table_rows(a), table = rows * a->dh;
    sum_terms(g, a, d->d_rel_k, a->rel_head, t.rel_k, table);
    sum_terms(g, a, d->d_rel_v, a->rel_head, t.rel_v, table);
    sum_terms(g, a, d->d_bias, a->bias_head, t.bias, rows);
    sum_terms(g, a, d->d_u, a->dh, t.u, a->dh);
    sum_terms(g, a, d->d_w, a->dh, t.w, a->dh);
}
