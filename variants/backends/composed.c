/* SPDX-License-Identifier: MIT
 *
 * Attention as matrix products with a softmax between them, in causal row blocks: block rows
 * [i0, i1) only meet the keys that its last row sees, so about half of the square is never touched.
 *
 *   S = scale (Q + u) K^T            one product
 *   G = scale (Q + w) rel_k^T        one product over the table rows that the block's distances use
 *   P = softmax(S + shift(G))        row operation; the relative shift is a pointer offset there
 *   O = P V                          one product
 *   O += W rel_v                     W[i][r] = sum of P[i][j] over the keys that share row r
 *
 * One parallel region per call. Items are (sequence, head, row block), longest first; each product
 * runs on one thread, because a library's own threading loses half of its speed at these sizes. */
#include "composed.h"

#include <omp.h>
#include <string.h>

/* ---- work space --------------------------------------------------------------------------- */

int composed_rows(const struct attn *a)
{
    enum { ROW_BLOCK = 128 }; /* 128 x K floats of scores stay near the L2 cache */

    return min_int(a->L, ROW_BLOCK);
}

int composed_blocks(const struct attn *a)
{
    return (a->L + composed_rows(a) - 1) / composed_rows(a);
}

enum { PAD = 16 }; /* floats behind a row, so that rows are not a power of two apart */

ptrdiff_t composed_ld(int n) { return (ptrdiff_t)round_up((size_t)n, PAD) + PAD; }

ptrdiff_t composed_query_ld(const struct attn *a)
{
    return (ptrdiff_t)round_up((size_t)a->dh, PAD);
}

static ptrdiff_t table_ld(const struct attn *a)
{
    return a->rel_k || a->rel_v ? composed_ld(a->R + a->Rf) : 0;
}

static size_t space_floats(const struct attn *a)
{
    const size_t rows = (size_t)composed_rows(a);

    return rows * (size_t)table_ld(a) + rows * (size_t)composed_query_ld(a);
}

static struct attn_need need(const struct attn *a, int threads)
{
    const size_t rows = (size_t)composed_rows(a), n = (size_t)threads;

    return (struct attn_need){
        .scores_bytes = n * rows * (size_t)composed_ld(a->M + a->L) * sizeof(float),
        .scratch_bytes = n * space_floats(a) * sizeof(float),
    };
}

static struct space space_of(const struct attn *a, int threads, int thread, void *scratch)
{
    const ptrdiff_t rows = composed_rows(a), scores = rows * composed_ld(a->M + a->L);
    float *rest = (float *)scratch + threads * scores + thread * (ptrdiff_t)space_floats(a);

    return (struct space){
        .s = (float *)scratch + thread * scores, .g = rest, .q = rest + rows * table_ld(a)};
}

/* ---- one block ---------------------------------------------------------------------------- */

struct block_at composed_locate(const struct attn *a, int b, int h, int block)
{
    const int rows = composed_rows(a), K = a->M + a->L;
    struct block_at at = {.b = b, .h = h, .i0 = block * rows};

    at.n = min_int(rows, a->L - at.i0);
    at.j0 = a->window ? max_int(0, a->M + at.i0 - a->window + 1) : 0;
    at.cols = (a->causal ? a->M + at.i0 + at.n : K) - at.j0;
    /* Row index of key j for query i is j + R-1-M-i, clipped: smallest for the last query. */
    const int last = at.i0 + at.n - 1, all = a->R + a->Rf;
    at.r0 = clamp_int(at.j0 + a->R - 1 - a->M - last, 0, max_int(0, all - 1));
    const int r1 = clamp_int(at.j0 + at.cols + a->R - 1 - a->M - at.i0, at.r0 + 1, max_int(1, all));
    at.n_rel = all ? r1 - at.r0 : 0;
    at.shift = at.j0 + a->R - 1 - a->M - at.i0 - at.r0;
    at.kv = h / (a->H / a->Hkv);
    return at;
}

static void add_vector(float *dst, ptrdiff_t ld, const float *q, ptrdiff_t q_ld, const float *add,
                       int rows, int n)
{
    for (int i = 0; i < rows; i++)
        for (int e = 0; e < n; e++)
            dst[i * ld + e] = q[i * q_ld + e] + add[e];
}

const float *composed_queries(const struct attn *a, const struct block_at *at, const float *add,
                              float *work, ptrdiff_t *ld)
{
    const float *q = a->q + at->b * a->q_at.batch + at->i0 * a->q_at.row + (ptrdiff_t)at->h * a->dh;

    *ld = a->q_at.row;
    if (!add)
        return q;
    *ld = composed_query_ld(a);
    add_vector(work, *ld, q, a->q_at.row, add + (ptrdiff_t)at->h * a->dh, at->n, a->dh);
    return work;
}

/* dst [n, cols] = scale (q + add) keys^T */
static void scores(const struct engine *g, const struct attn *a, const struct block_at *at,
                   const float *add, const float *keys, ptrdiff_t key_ld, int cols, float *dst,
                   ptrdiff_t ld, float *work)
{
    ptrdiff_t q_ld;
    const float *q = composed_queries(a, at, add, work, &q_ld);

    g->ops.gemm(&(struct gemm){.tb = true,
                               .m = at->n,
                               .n = cols,
                               .k = a->dh,
                               .alpha = a->scale,
                               .a = q,
                               .lda = q_ld,
                               .b = keys,
                               .ldb = key_ld,
                               .c = dst,
                               .ldc = ld,
                               .threads = 1});
}

void composed_sum_by_row(const struct block_at *at, const float *p, ptrdiff_t ld, float *w,
                         ptrdiff_t w_ld)
{
    for (int i = 0; i < at->n; i++) {
        const int shift = at->shift - i;                                    /* row = j + shift */
        const int first = clamp_int(1 - shift, 0, at->cols);                /* row 1 */
        const int last = clamp_int(at->n_rel - 1 - shift, first, at->cols); /* row n_rel-1 */
        const float *p_i = p + i * ld;
        float *w_i = w + i * w_ld;
        float far = 0, future = 0;

        memset(w_i, 0, sizeof(float) * (size_t)at->n_rel);
        for (int j = 0; j < first; j++)
            far += p_i[j];
        for (int j = first; j < last; j++)
            w_i[j + shift] = p_i[j];
        for (int j = last; j < at->cols; j++)
            future += p_i[j];
        w_i[0] += far;
        w_i[at->n_rel - 1] += future;
    }
}

void composed_probabilities(const struct engine *g, const struct attn *a, const struct block_at *at,
                            const struct space *sp, float *lse)
{
    const float *k =
        a->k + at->b * a->k_at.batch + at->j0 * a->k_at.row + (ptrdiff_t)at->kv * a->dh;
    const ptrdiff_t ld = composed_ld(a->M + a->L), g_ld = table_ld(a);
    const ptrdiff_t table = at->h * a->rel_head + (ptrdiff_t)at->r0 * a->dh;

    scores(g, a, at, a->u, k, a->k_at.row, at->cols, sp->s, ld, sp->q);
    if (a->rel_k)
        scores(g, a, at, a->w, a->rel_k + table, a->dh, at->n_rel, sp->g, g_ld, sp->q);
    g->ops.softmax(&(struct softmax){
        .s = sp->s,
        .ld = ld,
        .rows = at->n,
        .cols = at->cols,
        .lo = a->window ? a->M + at->i0 - a->window + 1 - at->j0 : 0,
        .lo_slope = a->window ? 1 : 0,
        .hi = a->causal ? a->M + at->i0 + 1 - at->j0 : at->cols,
        .hi_slope = a->causal ? 1 : 0,
        .rel = a->rel_k ? sp->g : NULL,
        .rel_ld = g_ld,
        .bias = a->bias ? a->bias + at->h * a->bias_head + at->r0 : NULL,
        .n_rel = at->n_rel,
        .shift = at->shift,
        .lse = lse,
        .threads = 1,
    });
}

static void run_block(const struct engine *g, const struct attn *a, const struct block_at *at,
                      const struct space *sp)
{
    const float *v =
        a->v + at->b * a->v_at.batch + at->j0 * a->v_at.row + (ptrdiff_t)at->kv * a->dh;
    float *o = a->o + at->b * a->o_at.batch + at->i0 * a->o_at.row + (ptrdiff_t)at->h * a->dh;
    const ptrdiff_t ld = composed_ld(a->M + a->L), g_ld = table_ld(a);
    const ptrdiff_t table = at->h * a->rel_head + (ptrdiff_t)at->r0 * a->dh;
    float *lse = a->lse ? a->lse + ((ptrdiff_t)at->b * a->H + at->h) * a->L + at->i0 : NULL;

    composed_probabilities(g, a, at, sp, lse);
    g->ops.gemm(&(struct gemm){.m = at->n,
                               .n = a->dh,
                               .k = at->cols,
                               .alpha = 1,
                               .a = sp->s,
                               .lda = ld,
                               .b = v,
                               .ldb = a->v_at.row,
                               .c = o,
                               .ldc = a->o_at.row,
                               .threads = 1});
    if (a->rel_v) {
        composed_sum_by_row(at, sp->s, ld, sp->g, g_ld);
        g->ops.gemm(&(struct gemm){.m = at->n,
                                   .n = a->dh,
                                   .k = at->n_rel,
                                   .alpha = 1,
                                   .beta = 1,
                                   .a = sp->g,
                                   .lda = g_ld,
                                   .b = a->rel_v + table,
                                   .ldb = a->dh,
                                   .c = o,
                                   .ldc = a->o_at.row,
                                   .threads = 1});
    }
}

/* ---- the implementation ------------------------------------------------------------------- */

static bool accepts(const struct attn *a, const char **why_not)
{
    (void)a, (void)why_not;
    return true; /* every term of struct attn has its product */
}

static void forward(const struct engine *g, const struct attn *a, void *scratch)
{
    const int n_blocks = composed_blocks(a);
    const int items = a->B * a->H * n_blocks;

#pragma omp parallel for schedule(dynamic, 1) num_threads(g->threads)
    for (int item = 0; item < items; item++) {
        const int heads = a->B * a->H, block = n_blocks - 1 - item / heads; /* longest first */
        const struct block_at at = composed_locate(a, item % heads / a->H, item % a->H, block);
        const struct space sp = space_of(a, g->threads, omp_get_thread_num(), scratch);
        run_block(g, a, &at, &sp);
    }
}

const struct attn_impl attn_composed = {
    .name = "composed",
    .accepts = accepts,
    .need = need,
    .forward = forward,
    .need_backward = composed_need_backward,
    .backward = composed_backward,
};
