/* SPDX-License-Identifier: MIT
 *
 * Backward of attention: the reference's against finite differences of its forward, and every
 * backend on tables of which few rows are read. Backends against the reference:
 * tests/check/test_op_cases.c. Scratch starts as NaN, results are surrounded by guard words. */
#include "tests/support/attn_case.h"
#include "tests/support/every_backend.h"
#include "tests/support/finite.h"

#include <criterion/parameterized.h>

static double dot(const float *x, const float *y, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    return sum;
}

static double dot_abs(const float *x, const float *y, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += fabs((double)x[i] * (double)y[i]);
    return sum;
}

static float *smooth(size_t n, const char *name, float mean, float sd)
{
    float *x = normal(n, name, mean, sd);

    quantise(x, n);
    return x;
}

static float *zeros(size_t n)
{
    float *x = guarded(n);

    memset(x, 0, n * sizeof(*x));
    return x;
}

/* ---- attention: problem ------------------------------------------------------------------- */

struct problem {
    struct operands x;
    struct attn_grad d;
    float *d_o, *d_q, *d_k, *d_v, *d_u, *d_w, *d_rel_k, *d_rel_v, *d_bias;
    size_t q_n, k_n, v_n, uw_n, rel_n, bias_n;
};

static void make_problem(struct problem *p, const struct shape *s, const struct scheme *t)
{
    make_operands(&p->x, s, t);
    const struct attn *a = &p->x.a;
    const int tables = t->terms & PER_HEAD ? s->H : 1, rows = a->R + a->Rf;

    p->q_n = (size_t)(a->B * a->q_at.batch);
    p->k_n = (size_t)(a->B * a->k_at.batch);
    p->v_n = (size_t)(a->B * a->v_at.batch);
    p->uw_n = (size_t)(a->H * a->dh);
    p->bias_n = (size_t)(tables * rows);
    p->rel_n = p->bias_n * (size_t)a->dh;
    p->x.a.lse = p->x.lse;
    p->d_o = smooth(p->x.o_size, "d_o", 0, 1);
    p->d_q = guarded(p->q_n), p->d_k = guarded(p->k_n), p->d_v = guarded(p->v_n);
    p->d_u = zeros(p->uw_n), p->d_w = zeros(p->uw_n);
    p->d_rel_k = zeros(p->rel_n), p->d_rel_v = zeros(p->rel_n), p->d_bias = zeros(p->bias_n);
    p->d = (struct attn_grad){
        .d_o = p->d_o,
        .d_q = p->d_q,
        .d_k = p->d_k,
        .d_v = p->d_v,
        .d_u = a->u ? p->d_u : NULL,
        .d_w = a->w ? p->d_w : NULL,
        .d_rel_k = a->rel_k ? p->d_rel_k : NULL,
        .d_rel_v = a->rel_v ? p->d_rel_v : NULL,
        .d_bias = a->bias ? p->d_bias : NULL,
    };
}

static void free_problem(struct problem *p)
{
    free_operands(&p->x);
    release(p->d_o), release(p->d_q), release(p->d_k), release(p->d_v), release(p->d_u);
    release(p->d_w), release(p->d_rel_k), release(p->d_rel_v), release(p->d_bias);
}

/* Forward and backward, with scratch of exactly the size asked for, full of NaN. */
static void run_backward(const struct engine *g, const struct problem *p)
{
    const struct attn *a = &p->x.a;
    const struct attn_impl *impl;
    struct err e = {""};

    attend(g, a);
    cr_assert_eq(engine_attn(g, a, &impl, &e), OK, "%s", e.msg);
    cr_assert_eq(engine_attn_backward(g, impl, &e), OK, "%s", e.msg);
    const struct attn_need need = impl->need_backward(a, g->threads);
    const size_t size = need.scores_bytes + need.scratch_bytes;
    unsigned char *scratch = aligned_alloc(64, round_up(size + 64, 64));
    cr_assert_not_null(scratch);
    memset(scratch, 0xff, round_up(size + 64, 64));
    impl->backward(g, a, &p->d, scratch);
    for (int i = 0; i < 64; i++)
        cr_expect_eq(scratch[size + (size_t)i], 0xff, "scratch overrun");
    free(scratch);
}

static void expect_guards(const struct problem *p)
{
    cr_expect(guards_intact(p->d_q, p->q_n) && guards_intact(p->d_k, p->k_n) &&
              guards_intact(p->d_v, p->v_n) && guards_intact(p->d_u, p->uw_n) &&
              guards_intact(p->d_w, p->uw_n) && guards_intact(p->d_rel_k, p->rel_n) &&
              guards_intact(p->d_rel_v, p->rel_n) && guards_intact(p->d_bias, p->bias_n));
}

static const struct shape shapes[] = {
    {1, 1, 1, 1, 0, 1},  {2, 3, 3, 5, 0, 7},   {1, 2, 2, 1, 9, 4},    {2, 4, 2, 6, 5, 3},
    {1, 6, 1, 9, 2, 16}, {1, 1, 1, 17, 31, 8}, {1, 2, 1, 131, 21, 9}, {3, 2, 2, 33, 0, 17},
};
static const struct scheme schemes[] = {
    {0, 0, 0, 0},
    {HAS_U | HAS_W | REL_K | PER_HEAD, ALL_KEYS, 0, 0},
    {HAS_U | HAS_W | REL_K | PER_HEAD, 4, 0, 3},
    {REL_K | REL_V, 3, 0, 0},
    {REL_K | REL_V | FULL, 3, 2, 0},
    {REL_V, 1, 0, 0},
    {REL_K | REL_V | PER_HEAD, 200, 4, 0},
    {BIAS, 6, 0, 4},
    {BIAS | PER_HEAD | HAS_U | FULL, 9, 7, 0},
    {HAS_U | HAS_W | REL_K | REL_V | BIAS | PER_HEAD, 5, 3, 0},
    {HAS_U | HAS_W | REL_K | REL_V | BIAS | FULL, ALL_KEYS, 11, 7},
};

/* ---- attention: finite differences -------------------------------------------------------- */

static double attn_value(void *ctx)
{
    struct problem *p = ctx;
    const struct engine g = open_engine("ref", 1);
    const struct attn *a = &p->x.a;
    double sum = 0;

    attend(&g, a);
    for (int b = 0; b < a->B; b++)
        for (int i = 0; i < a->L; i++) {
            const ptrdiff_t at = b * a->o_at.batch + i * a->o_at.row;
            sum += dot(a->o + at, p->d_o + at, (size_t)(a->H * a->dh));
        }
    return sum;
}

/* Gaps between rows are not operands. */
static void clear_gaps(float *d, const float *x, struct stride at, int B, int rows, int n)
{
    for (int b = 0; b < B; b++)
        for (ptrdiff_t i = 0; i < at.batch; i++)
            if (i / at.row >= rows || i % at.row >= n) {
                cr_expect_eq(d[b * at.batch + i], x ? x[b * at.batch + i] : GUARD_VALUE,
                             "a gap was written");
                d[b * at.batch + i] = 0;
            }
}

static void differentiate_attn(const struct shape *s, const struct scheme *t)
{
    const struct engine g = open_engine("ref", 1);
    struct problem p;

    make_problem(&p, s, t);
    struct operands *x = &p.x;
    const struct attn *a = &x->a;
    const int K = attn_keys(a);
    quantise(x->q, p.q_n), quantise(x->k, p.k_n), quantise(x->v, p.v_n);
    quantise(x->u, p.uw_n), quantise(x->w, p.uw_n);
    quantise(x->rel_k, p.rel_n), quantise(x->rel_v, p.rel_n), quantise(x->bias, p.bias_n);
    run_backward(&g, &p);
    expect_guards(&p);
    clear_gaps(p.d_q, NULL, a->q_at, a->B, a->L, a->H * a->dh);
    clear_gaps(p.d_k, NULL, a->k_at, a->B, K, a->Hkv * a->dh);
    clear_gaps(p.d_v, NULL, a->v_at, a->B, K, a->Hkv * a->dh);

    /* Each output is stored once: U relative. Gradients are sums in double, stored once: U of their
     * length, and 64 U for earlier cancellation. Gradients of scores cancel to nothing if a query
     * sees only one key. */
    double stored = 0;
    for (int b = 0; b < a->B; b++)
        for (int i = 0; i < a->L; i++) {
            const ptrdiff_t at = b * a->o_at.batch + i * a->o_at.row;
            stored += dot_abs(a->o + at, p.d_o + at, (size_t)(a->H * a->dh));
        }
    const struct scalar f = {attn_value, &p, U * stored, 0};
    const double relative = 64 * U, absolute = 2 * f.noise / FINITE_STEP;
    expect_gradient(&f, "q", x->q, p.d_q, p.q_n, relative, absolute);
    expect_gradient(&f, "k", x->k, p.d_k, p.k_n, relative, absolute);
    expect_gradient(&f, "v", x->v, p.d_v, p.v_n, relative, absolute);
    if (a->u)
        expect_gradient(&f, "u", x->u, p.d_u, p.uw_n, relative, absolute);
    if (a->w)
        expect_gradient(&f, "w", x->w, p.d_w, p.uw_n, relative, absolute);
    if (a->rel_k)
        expect_gradient(&f, "rel_k", x->rel_k, p.d_rel_k, p.rel_n, relative, absolute);
    if (a->rel_v)
        expect_gradient(&f, "rel_v", x->rel_v, p.d_rel_v, p.rel_n, relative, absolute);
    if (a->bias)
        expect_gradient(&f, "bias", x->bias, p.d_bias, p.bias_n, relative, absolute);
    free_problem(&p);
}

Test(grad, attention_is_the_derivative)
{
    for (size_t s = 0; s < 6; s++)
        for (size_t t = 0; t < ARRAY_LEN(schemes); t++)
            differentiate_attn(&shapes[s], &schemes[t]);
}

/* ---- attention: every backend ------------------------------------------------------------- */

/* Terms are added to what is there; rows that no pair reads keep their bits. Distances 0..9 exist,
 * the table has 200 rows for the past and 4 for a future that a causal mask hides. */
static void terms_are_added(const char *backend)
{
    const struct engine g = open_engine(backend, 2);
    const struct shape s = {2, 2, 2, 6, 4, 5};
    const struct scheme t = {REL_K | REL_V | BIAS, 200, 4, 0};
    struct problem once, twice;

    make_problem(&once, &s, &t);
    make_problem(&twice, &s, &t);
    run_backward(&g, &once);
    run_backward(&g, &twice);
    run_backward(&g, &twice);
    for (int r = 0; r < 204; r++)
        for (int e = 0; e < s.dh; e++) {
            const int at = r * s.dh + e;
            const bool used = r >= 190 && r < 200;
            cr_expect_eq(once.d_rel_k[at] != 0, used);
            cr_expect_eq(once.d_rel_v[at] != 0, used);
            cr_expect_eq(once.d_bias[r] != 0, used);
            cr_expect_eq(twice.d_rel_k[at], 2 * once.d_rel_k[at]);
            cr_expect_eq(twice.d_rel_v[at], 2 * once.d_rel_v[at]);
            cr_expect_eq(twice.d_bias[r], 2 * once.d_bias[r]);
        }
    free_problem(&once), free_problem(&twice);
}

Test(grad, terms_are_added_ref) { terms_are_added("ref"); }
ParameterizedTestParameters(grad, terms_are_added) { return all_but_ref(); }
ParameterizedTest(const int *b, grad, terms_are_added) { terms_are_added(backends[*b]->name); }
