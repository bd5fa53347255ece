/* SPDX-License-Identifier: MIT
 *
 * Attention with oneDNN's batched matmul: per block of rows one product for the scores of all heads
 * and one for their outputs, on the matrices in place ([L,H,dh] is an order of dimensions that the
 * library's best kernels support; a single head of it is not). Between the products, each head adds
 * its relative term and applies its softmax. Faster than composed attention, and with blocks of
 * half as many rows, while the scores of all heads fit in the L2 cache. */
#include "compat.h"
#include "graph.h"

#include "product.h"
#include "variants/backends/composed/composed.h"

enum {
    ROWS = 64,             /* most rows of a block */
    FEW_ROWS = 32,         /* with fewer queries, the kernel's copy of the keys does not pay */
    SCORE_BYTES = 1 << 20, /* L2 cache of a core */
};

static int block_count(const struct attn *a) { return (a->L + ROWS - 1) / ROWS; }

/* Blocks of nearly the same size, without a short one at the end. */
static int block_rows(const struct attn *a) { return (a->L + block_count(a) - 1) / block_count(a); }

static size_t score_bytes(const struct attn *a)
{
    return (size_t)a->H * (size_t)block_rows(a) * (size_t)attn_keys(a) * sizeof(float);
}

static bool accepts(const struct attn *a, const char **why_not)
{
    const unsigned supported = TERM_U | TERM_REL_K | TERM_BIAS | TERM_LSE;

    *why_not = !generates(dnnl_cpu_isa_avx512_core) ? "needs AVX-512"
               : a->L < FEW_ROWS                    ? "too few queries"
               : score_bytes(a) > SCORE_BYTES       ? "scores of all heads exceed 1 MiB"
                                                    : NULL;
    return !*why_not && attn_supports(a, supported, why_not);
}

/* ---- work space --------------------------------------------------------------------------- */

struct batch_space {
    float *s; /* [H, rows, keys of the block] */
    float *q; /* [rows, H, dh] q + u */
    float *w; /* [H, rows, dh] q + w */
    float *g; /* [H, rows, composed_ld(R + Rf)] scores against the table */
};

static size_t query_floats(const struct attn *a)
{
    return round_up((size_t)block_rows(a) * (size_t)a->H * (size_t)a->dh, 16);
}

static ptrdiff_t table_ld(const struct attn *a) { return composed_ld(a->R + a->Rf); }

static struct attn_need need(const struct attn *a, int threads)
{
    const size_t table = (size_t)a->H * (size_t)block_rows(a) * (size_t)table_ld(a);

    return (struct attn_need){
        .scores_bytes = round_up(score_bytes(a), 64),
        .scratch_bytes = sizeof(float) *
                         ((a->u ? query_floats(a) : 0) + (a->rel_k ? query_floats(a) + table : 0)),
    };
}

static struct batch_space batch_space_of(const struct attn *a, void *scratch)
{
    float *s = scratch, *q = s + round_up(score_bytes(a), 64) / sizeof(float);
    float *w = q + (a->u ? query_floats(a) : 0);

    return (struct batch_space){.s = s, .q = q, .w = w, .g = w + query_floats(a)};
}

/* ---- one block of rows -------------------------------------------------------------------- */

struct part {
    int b, i0, n; /* sequence, first query, queries */
    int cols;     /* keys that any of them sees */
};

/* dst [n, dh] = q of head h + add of head h */
static void add_vector(float *dst, ptrdiff_t ld, const struct attn *a, const struct part *p, int h,
                       const float *add)
{
    const ptrdiff_t head = (ptrdiff_t)h * a->dh;
    const float *q = a->q + p->b * a->q_at.batch + p->i0 * a->q_at.row + head;

    for (int i = 0; i < p->n; i++)
        for (int e = 0; e < a->dh; e++)
            dst[i * ld + e] = q[i * a->q_at.row + e] + add[head + e];
}

/* The relative scores of one head: its table rows from r0 on, n_rel of them. */
static void relative_scores(const struct engine *g, const struct attn *a, const struct part *p,
                            int h, int r0, int n_rel, float *dst, float *work)
{
    const float *q = a->q + p->b * a->q_at.batch + p->i0 * a->q_at.row + (ptrdiff_t)h * a->dh;

    if (a->w)
        add_vector(work, a->dh, a, p, h, a->w);
    mm_here(g, NT, p->n, n_rel, a->dh, a->scale, a->w ? work : q, a->w ? a->dh : a->q_at.row,
            a->rel_k + h * a->rel_head + (ptrdiff_t)r0 * a->dh, a->dh, 0, dst, table_ld(a));
}

static void head_probabilities(const struct engine *g, const struct attn *a, const struct part *p,
                               const struct batch_space *space, int h)
{
    const int all = a->R + a->Rf, near = a->R - 1 - a->M - p->i0; /* key j of row 0: j + near */
    const int r0 = clamp_int(near - (p->n - 1), 0, max_int(0, all - 1));
    const int n_rel = all ? clamp_int(p->cols + near, r0 + 1, all) - r0 : 0;
    float *table = space->g + (ptrdiff_t)h * block_rows(a) * table_ld(a);

    if (a->rel_k)
        relative_scores(g, a, p, h, r0, n_rel, table,
                        space->w + (ptrdiff_t)h * block_rows(a) * a->dh);
    g->ops.softmax(&(struct softmax){
        .s = space->s + (ptrdiff_t)h * p->n * p->cols,
        .ld = p->cols,
        .rows = p->n,
        .cols = p->cols,
        .hi = a->causal ? a->M + p->i0 + 1 : p->cols,
        .hi_slope = a->causal ? 1 : 0,
        .rel = a->rel_k ? table : NULL,
        .rel_ld = table_ld(a),
        .bias = a->bias ? a->bias + h * a->bias_head + r0 : NULL,
        .n_rel = n_rel,
        .shift = near - r0,
        .lse = a->lse ? a->lse + ((ptrdiff_t)p->b * a->H + h) * a->L + p->i0 : NULL,
        .threads = 1,
    });
}

/* S = scale (Q + u) K^T of all heads. */
static void all_scores(const struct engine *g, const struct attn *a, const struct part *p,
                       const struct batch_space *space)
{
    const ptrdiff_t row = (ptrdiff_t)a->H * a->dh;
    const ptrdiff_t keys = p->b * a->k_at.batch, queries = p->b * a->q_at.batch;

    for (int h = 0; a->u && h < a->H; h++)
        add_vector(space->q + (ptrdiff_t)h * a->dh, row, a, p, h, a->u);
    const struct gemm product =
        mm_of(g, NT, p->n, p->cols, a->dh, a->scale,
              a->u ? space->q : a->q + queries + p->i0 * a->q_at.row, a->u ? row : a->q_at.row,
              a->k + keys, a->k_at.row, 0, space->s, p->cols);

    product_run_heads(&product, &(struct heads){a->H, a->dh, a->dh, (ptrdiff_t)p->n * p->cols});
}

/* O = P V of all heads. */
static void all_outputs(const struct engine *g, const struct attn *a, const struct part *p,
                        const struct batch_space *space)
{
    const struct gemm product =
        mm_of(g, NN, p->n, a->dh, p->cols, 1, space->s, p->cols, a->v + p->b * a->v_at.batch,
              a->v_at.row, 0, a->o + p->b * a->o_at.batch + p->i0 * a->o_at.row, a->o_at.row);

    product_run_heads(&product, &(struct heads){a->H, (ptrdiff_t)p->n * p->cols, a->dh, a->dh});
}

static void forward(const struct engine *g, const struct attn *a, void *scratch)
{
    const int rows = block_rows(a);
    const struct batch_space space = batch_space_of(a, scratch);

    for (int b = 0; b < a->B; b++)
        for (int i0 = 0; i0 < a->L; i0 += rows) {
            struct part p = {.b = b, .i0 = i0, .n = min_int(rows, a->L - i0)};
            p.cols = a->causal ? a->M + i0 + p.n : attn_keys(a);
            all_scores(g, a, &p, &space);
#pragma omp parallel for num_threads(g->threads)
            for (int h = 0; h < a->H; h++)
                head_probabilities(g, a, &p, &space, h);
            all_outputs(g, a, &p, &space);
        }
}

const struct attn_impl attn_batched = {
    .name = "batched",
    .accepts = accepts,
    .need = need,
    .forward = forward,
    .backward_by = "composed",
    .need_backward = composed_need_backward,
    .backward = composed_backward,
};
