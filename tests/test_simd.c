/* SPDX-License-Identifier: MIT
 *
 * Every backend's matrix products and attention against the reference's, on awkward shapes, with
 * each optional term alone and all together. Scratch starts as NaN and has guard words behind it;
 * outputs are surrounded by them. Bounds are derived where they are used, in units of U = 2^-24. */
#include "../variants/backends/backend.h"
#include "guarded.h"

#include <criterion/parameterized.h>
#include <string.h>

/* Criterion copies parameters into other processes: an index, no pointers. */
struct who {
    int backend, threads;
};
static struct criterion_test_params all_but_ref(void)
{
    static struct who list[32];
    size_t n = 0;

    for (int i = 0; backends[i] && n + 1 < ARRAY_LEN(list); i++)
        if (backends[i] != &backend_ref)
            for (int threads = 1; threads <= 2; threads++)
                list[n++] = (struct who){i, threads};
    return cr_make_param_array(struct who, list, n);
}

static struct engine open_engine(const char *name, int threads)
{
    struct engine g;
    struct err e;
    const enum status st = engine_open(&g, name, threads, NULL, &e);

    if (st == E_UNSUPPORTED)
        cr_skip_test("%s", e.msg);
    cr_assert_eq(st, OK, "%s", e.msg);
    return g;
}

/* ---- gemm --------------------------------------------------------------------------------- */

static const int product_shapes[][3] = {
    {1, 1, 1},    {1, 37, 5},    {2, 5, 64},   {3, 4, 17},     {8, 19, 33},   {9, 16, 16},
    {7, 33, 1},   {13, 15, 100}, {14, 32, 8},  {15, 31, 257},  {37, 65, 300}, {6, 17, 600},
    {120, 48, 9}, {113, 530, 3}, {1, 600, 70}, {129, 120, 40}, {5, 3, 0},     {64, 96, 258},
};

/* A sum of k products in any order is off by k U sum |a||b|; alpha, beta and their sum add 3 U. The
 * reference's store adds one more. */
static double product_bound(const struct gemm *g, double old, int i, int j)
{
    double sum = 0;

    for (int p = 0; p < g->k; p++)
        sum += fabs((double)g->a[g->ta ? p * g->lda + i : i * g->lda + p]) *
               fabs((double)g->b[g->tb ? j * g->ldb + p : p * g->ldb + j]);
    return U * ((g->k + 4) * fabs((double)g->alpha) * sum + 4 * fabs((double)g->beta * old));
}

static double product_error(const struct engine *e, const int *shape, int mode)
{
    const int m = shape[0], n = shape[1], k = shape[2];
    const bool ta = mode & 1, tb = mode & 2;
    const ptrdiff_t lda = (ta ? m : k) + 3, ldb = (tb ? k : n) + 1, ldc = n + 2;
    const size_t size = (size_t)(m * ldc);
    float *a = normal((size_t)((ta ? k : m) * lda + 1), "a", 0, 1);
    float *b = normal((size_t)((tb ? n : k) * ldb + 1), "b", 0, 1);
    float *got = guarded(size), *want = guarded(size), *old = normal(size, "c", 0, 1);
    double worst = 0;
    struct gemm g = {.ta = ta,
                     .tb = tb,
                     .m = m,
                     .n = n,
                     .k = k,
                     .alpha = mode & 4 ? 0.5f : 1.0f,
                     .beta = mode & 8 ? -0.75f : 0.0f,
                     .a = a,
                     .b = b,
                     .c = want,
                     .lda = lda,
                     .ldb = ldb,
                     .ldc = ldc,
                     .threads = 1};

    for (int i = 0; i < m; i++) /* the gap behind each row keeps its guard words */
        for (int j = 0; j < n; j++)
            got[i * ldc + j] = want[i * ldc + j] = mode & 8 ? old[i * ldc + j] : NAN;
    backend_ref.ops.gemm(&g);
    g.c = got;
    g.threads = e->threads;
    e->ops.gemm(&g);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < ldc; j++) {
            const ptrdiff_t at = i * ldc + j;
            const double bound = j < n ? product_bound(&g, old[at], i, j) : 0;
            worst = fmax(worst, in_bounds(got[at], want[at], bound));
        }
    cr_expect(guards_intact(got, size));
    release(a), release(b), release(got), release(want), release(old);
    return worst;
}

ParameterizedTestParameters(simd, gemm) { return all_but_ref(); }
ParameterizedTest(struct who *w, simd, gemm, .timeout = 60)
{
    const struct engine g = open_engine(backends[w->backend]->name, w->threads);

    for (size_t s = 0; s < ARRAY_LEN(product_shapes); s++)
        for (int mode = 0; mode < 16; mode++) {
            const int *shape = product_shapes[s];
            const double e = product_error(&g, shape, mode);
            cr_assert_lt(e, 1.0, "%s: m, n, k = %d, %d, %d, mode %d: %.2f x its bound",
                         g.backend->name, shape[0], shape[1], shape[2], mode, e);
        }
}

/* ---- attention ---------------------------------------------------------------------------- */

enum { HAS_U = 1, HAS_W = 2, REL_K = 4, REL_V = 8, BIAS = 16, PER_HEAD = 32, LSE = 64, FULL = 128 };
enum { ALL_KEYS = 100000 };

/* Optional terms; R = ALL_KEYS stands for a row for every distance. */
struct scheme {
    int terms, R, Rf, window;
};
static const struct scheme schemes[] = {
    {0, 0, 0, 0},                                             /* vanilla */
    {LSE, 0, 0, 11},                                          /* a window */
    {FULL | LSE, 0, 0, 0},                                    /* sees the future */
    {HAS_U, 0, 0, 0},                                         /* u alone */
    {REL_K | LSE, 5, 0, 0},                                   /* Shaw's keys */
    {REL_V, 5, 0, 0},                                         /* Shaw's values */
    {REL_K | REL_V | PER_HEAD | LSE, 17, 0, 0},               /* both, per head */
    {REL_K | REL_V | FULL | LSE, 4, 3, 0},                    /* both directions */
    {REL_K | REL_V | FULL | PER_HEAD, 1, 2, 9},               /* nearly nothing of a table */
    {REL_K | REL_V, 9, 8, 0},                                 /* full table, causal mask */
    {HAS_U | HAS_W | REL_K | PER_HEAD | LSE, ALL_KEYS, 0, 0}, /* Transformer-XL */
    {HAS_U | HAS_W | REL_K | PER_HEAD, 12, 0, 0},             /* clamp_len */
    {HAS_W | REL_K | REL_V, ALL_KEYS, 0, 7},                  /* same_length */
    {BIAS | PER_HEAD | LSE, ALL_KEYS, 0, 0},                  /* ALiBi */
    {BIAS | FULL, 6, 5, 0},                                   /* T5 */
    {HAS_U | HAS_W | REL_K | REL_V | BIAS | PER_HEAD | LSE, 21, 0, 33},
    {HAS_U | HAS_W | REL_K | REL_V | BIAS | FULL | LSE, 21, 4, 0},
};

struct shape {
    int B, H, Hkv, L, M, dh;
};

/* All operands of one case, random. */
struct operands {
    struct attn a;
    float *q, *k, *v, *u, *w, *rel_k, *rel_v, *bias, *o, *lse;
    size_t o_size, lse_size;
};

static void make_operands(struct operands *x, const struct shape *s, const struct scheme *t)
{
    const int K = s->M + s->L, R = t->R == ALL_KEYS ? K : t->R, rows = R + t->Rf, width = s->dh;
    const bool per_head = t->terms & PER_HEAD;
    const size_t table = (size_t)(rows * width), tables = per_head ? (size_t)s->H : 1;
    const ptrdiff_t q_row = s->H * width + 3, k_row = s->Hkv * width + 1;

    x->q = normal((size_t)(s->B * s->L * q_row), "q", 0, 1);
    x->k = normal((size_t)(s->B * K * k_row), "k", 0, 1);
    x->v = normal((size_t)(s->B * K * k_row), "v", 0, 1);
    x->u = normal((size_t)(s->H * width), "u", 0, 0.5f);
    x->w = normal((size_t)(s->H * width), "w", 0, 0.5f);
    x->rel_k = normal(tables * table + 1, "rel_k", 0, 1);
    x->rel_v = normal(tables * table + 1, "rel_v", 0, 1);
    x->bias = normal(tables * (size_t)rows + 1, "bias", 0, 2);
    x->o_size = (size_t)(s->B * s->L * q_row);
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
        .q_at = {s->L * q_row, q_row},
        .k_at = {K * k_row, k_row},
        .v_at = {K * k_row, k_row},
        .o_at = {s->L * q_row, q_row},
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

static void free_operands(struct operands *x)
{
    release(x->q), release(x->k), release(x->v), release(x->u), release(x->w);
    release(x->rel_k), release(x->rel_v), release(x->bias), release(x->o), release(x->lse);
}

/* Run with scratch of exactly the size asked for, full of NaN. */
static void attend(const struct engine *g, const struct attn *a)
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

/* Largest Euclidean norm of a row of n floats. */
static double widest(const float *x, size_t rows, ptrdiff_t ld, int n)
{
    double most = 0;

    for (size_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int e = 0; e < n; e++)
            sum += (double)x[(ptrdiff_t)r * ld + e] * (double)x[(ptrdiff_t)r * ld + e];
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
static struct bound attn_bound(const struct operands *x)
{
    const struct attn *a = &x->a;
    const int n = a->M + a->L, d = a->dh, rows = a->R + a->Rf;
    const size_t tables = a->rel_head ? (size_t)a->H : 1;
    const double q = widest(a->q, (size_t)(a->B * a->L), a->q_at.row, a->H * d);
    const double u = widest(x->u, (size_t)a->H, d, d), w = widest(x->w, (size_t)a->H, d, d);
    double S = (q + u) * widest(a->k, (size_t)(a->B * n), a->k_at.row, a->Hkv * d);
    double v = widest(a->v, (size_t)(a->B * n), a->v_at.row, a->Hkv * d), bias = 0;

    if (a->rel_k)
        S += 2 * (q + w) * widest(a->rel_k, tables * (size_t)rows, d, d);
    if (a->rel_v)
        v += 2 * widest(a->rel_v, tables * (size_t)rows, d, d);
    if (a->bias)
        bias = widest(a->bias, (a->bias_head ? (size_t)a->H : 1) * (size_t)rows, 1, 1);
    S = (double)a->scale * S + bias;
    const double ds = U * (d + 8) * S, p = 2 * ds + U * (4 * S + 8);
    return (struct bound){.out = v * (p + U * (2 * n + 8)), .lse = p + U * (2 * S + n + 16)};
}

static void check_attn(const struct engine *g, const struct engine *ref, const struct shape *s,
                       int scheme)
{
    const struct scheme *t = &schemes[scheme];
    struct operands x, y;
    double worst = 0, error = 0, power = 0;

    make_operands(&x, s, t);
    make_operands(&y, s, t);
    attend(g, &x.a);
    attend(ref, &y.a);
    const struct bound bound = attn_bound(&x);
    for (size_t i = 0; i < x.o_size; i++) {
        const double d = (double)x.o[i] - (double)y.o[i];
        worst = fmax(worst, in_bounds(x.o[i], y.o[i], bound.out));
        error += d * d;
        if (y.o[i] != GUARD_VALUE)
            power += (double)y.o[i] * (double)y.o[i];
    }
    for (size_t i = 0; i < x.lse_size; i++)
        worst = fmax(worst, in_bounds(x.lse[i], y.lse[i], bound.lse));
    cr_assert(worst < 1.0 && error < 1e-10 * power,
              "%s, %d threads, scheme %d: B %d H %d Hkv %d L %d M %d dh %d: %.2g x its bound, "
              "normalised mean-square error %.2g",
              g->backend->name, g->threads, scheme, s->B, s->H, s->Hkv, s->L, s->M, s->dh, worst,
              error / power);
    cr_expect(guards_intact(x.o, x.o_size) && guards_intact(x.lse, x.lse_size));
    free_operands(&x), free_operands(&y);
}

ParameterizedTestParameters(simd, attention) { return all_but_ref(); }
ParameterizedTest(struct who *w, simd, attention, .timeout = 300)
{
    static const int L[] = {1, 2, 7, 8, 9, 37}, M[] = {0, 19, 64, 130};
    static const int dh[] = {1, 5, 8, 40, 64, 96}, kv_heads[] = {1, 2, 4};
    const struct engine g = open_engine(backends[w->backend]->name, w->threads);
    const struct engine ref = open_engine("ref", 1);
    size_t turn = 0;

    for (size_t l = 0; l < ARRAY_LEN(L); l++)
        for (size_t m = 0; m < ARRAY_LEN(M); m++)
            for (size_t d = 0; d < ARRAY_LEN(dh); d++)
                for (int t = 0; t < (int)ARRAY_LEN(schemes); t++, turn++) {
                    const bool full = schemes[t].terms & FULL;
                    const struct shape s = {.B = 1 + (int)(turn % 2),
                                            .H = 4,
                                            .Hkv = kv_heads[turn % ARRAY_LEN(kv_heads)],
                                            .L = L[l],
                                            .M = full ? M[m] / 8 : M[m],
                                            .dh = dh[d]};
                    check_attn(&g, &ref, &s, t);
                }
}

/* More queries than a work item takes, more keys than a block holds. */
ParameterizedTestParameters(simd, long_attention) { return all_but_ref(); }
ParameterizedTest(struct who *w, simd, long_attention, .timeout = 300)
{
    static const struct shape shapes[] = {{1, 2, 1, 135, 0, 16},
                                          {1, 1, 1, 70, 600, 33},
                                          {2, 2, 2, 64, 256, 256},
                                          {1, 2, 2, 3, 1100, 64}};
    const struct engine g = open_engine(backends[w->backend]->name, w->threads);
    const struct engine ref = open_engine("ref", 1);

    for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
        for (int t = 0; t < (int)ARRAY_LEN(schemes); t++)
            check_attn(&g, &ref, &shapes[s], t);
}
