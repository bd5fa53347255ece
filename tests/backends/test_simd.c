/* SPDX-License-Identifier: MIT
 *
 * Every backend's matrix products and attention against the reference's, on awkward shapes, with
 * each optional term alone and all together. Scratch starts as NaN and has guard words behind it;
 * outputs are surrounded by them. Bounds are derived where they are used, in units of U = 2^-24. */
#include "tests/support/attn_case.h"
#include "tests/support/product.h"

#include <criterion/parameterized.h>

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

/* ---- gemm --------------------------------------------------------------------------------- */

static const int product_shapes[][3] = {
    {1, 1, 1},    {1, 37, 5},    {2, 5, 64},   {3, 4, 17},     {8, 19, 33},   {9, 16, 16},
    {7, 33, 1},   {13, 15, 100}, {14, 32, 8},  {15, 31, 257},  {37, 65, 300}, {6, 17, 600},
    {120, 48, 9}, {113, 530, 3}, {1, 600, 70}, {129, 120, 40}, {5, 3, 0},     {64, 96, 258},
};

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
    static const struct shape shapes[] = {{1, 2, 1, 135, 0, 16},  {1, 2, 1, 9, 800, 80},
                                          {1, 1, 1, 70, 600, 33}, {2, 2, 2, 64, 256, 256},
                                          {1, 2, 2, 3, 1100, 64}, {1, 72, 72, 4, 3, 8},
                                          {1, 6, 3, 4, 530, 41},  {2, 3, 1, 1, 257, 24}};
    const struct engine g = open_engine(backends[w->backend]->name, w->threads);
    const struct engine ref = open_engine("ref", 1);

    for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
        for (int t = 0; t < (int)ARRAY_LEN(schemes); t++)
            check_attn(&g, &ref, &shapes[s], t);
}

/* Few queries with many threads: they share the keys, and the heads where keys are too few. */
ParameterizedTestParameters(simd, threads_share_keys) { return all_but_ref(); }
ParameterizedTest(struct who *w, simd, threads_share_keys, .timeout = 300)
{
    static const struct shape shapes[] = {
        {1, 1, 1, 1, 1000, 40}, {2, 1, 1, 3, 130, 64}, {1, 2, 1, 4, 200, 16}, {1, 1, 1, 1, 0, 8},
        {1, 6, 3, 2, 300, 41},  {1, 5, 5, 1, 90, 24},  {2, 4, 2, 4, 511, 8}};
    const struct engine g = open_engine(backends[w->backend]->name, 4 + w->threads);
    const struct engine ref = open_engine("ref", 1);

    for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
        for (int t = 0; t < (int)ARRAY_LEN(schemes); t++)
            check_attn(&g, &ref, &shapes[s], t);
}
