/* SPDX-License-Identifier: MIT
 *
 * Attention without a softmax: the operation of every backend against its equation in double, over
 * the borders of chunks, with memory, and with a state in and out; gradients of the reference
 * against finite differences, those of the others against the reference's. Models of it:
 * test_state.c. */
#include "tests/support/every_backend.h"
#include "tests/support/finite.h"
#include "tests/support/open_engine.h"
#include "variants/backends/composed/linear_attn.h"

#include <criterion/parameterized.h>

/* ---- problems -----------------------------------------------------------------------------------
 */

struct shape {
    int B, H, Hkv, L, M, m, d;
    bool state;
    float eps;
};

/* One row, a few, and both sides of one chunk and of two; heads that share a state. */
static const struct shape shapes[] = {
    {1, 1, 1, 1, 0, 1, 1, false, 0},        {2, 2, 2, 1, 0, 7, 5, true, 0},
    {1, 4, 2, 1, 0, 16, 16, true, 0.5f},    {2, 3, 3, 3, 0, 5, 9, true, 0},
    {1, 4, 1, 4, 0, 6, 17, false, 0},       {1, 2, 1, 2, 2, 8, 8, true, 0},
    {2, 2, 2, 5, 6, 12, 7, false, 0.25f},   {1, 2, 2, 63, 0, 16, 16, true, 0},
    {1, 2, 1, 64, 1, 20, 15, false, 1e-6f}, {1, 3, 3, 65, 63, 9, 31, true, 0},
    {2, 2, 1, 128, 64, 33, 8, true, 0},     {1, 2, 2, 129, 65, 64, 64, false, 0},
    {1, 1, 1, 200, 130, 40, 24, true, 0},   {1, 6, 2, 1, 0, 3, 151, true, 0.5f},
    {2, 2, 2, 1, 0, 70, 64, false, 0},
};

struct problem {
    struct shape p;
    int K;
    size_t queries, keys, states; /* rows of heads; states: matrices */
    float *fq, *fk, *v, *o, *den, *s0, *z0, *s1, *z1, *d_o, *d_fq, *d_fk, *d_v;
};

/* Features are positive. */
static float *features(size_t n, const char *name)
{
    float *x = positive(n, name);

    quantise(x, n);
    return x;
}

static void make(struct problem *t, const struct shape *p)
{
    *t = (struct problem){.p = *p, .K = p->L + p->M};
    const size_t m = (size_t)p->m, d = (size_t)p->d;
    t->queries = (size_t)(p->B * p->L * p->H);
    t->keys = (size_t)(p->B * t->K * p->Hkv);
    t->states = (size_t)(p->B * p->Hkv);
    t->fq = features(t->queries * m, "fq"), t->fk = features(t->keys * m, "fk");
    t->v = normal(t->keys * d, "v", 0, 1), t->d_o = normal(t->queries * d, "d_o", 0, 1);
    quantise(t->v, t->keys * d);
    t->s0 = normal(t->states * m * d, "s0", 0, 3), t->z0 = features(t->states * m, "z0");
    t->o = guarded(t->queries * d), t->den = guarded(t->queries);
    t->s1 = guarded(t->states * m * d), t->z1 = guarded(t->states * m);
    t->d_fq = guarded(t->queries * m), t->d_fk = guarded(t->keys * m);
    t->d_v = guarded(t->keys * d);
}

static void drop(struct problem *t)
{
    release(t->fq), release(t->fk), release(t->v), release(t->o), release(t->den);
    release(t->s0), release(t->z0), release(t->s1), release(t->z1), release(t->d_o);
    release(t->d_fq), release(t->d_fk), release(t->d_v);
}

static struct linear_attn attn_of(const struct problem *t)
{
    const struct shape *p = &t->p;

    return (struct linear_attn){.B = p->B,
                                .H = p->H,
                                .L = p->L,
                                .M = p->M,
                                .Hkv = p->Hkv,
                                .m = p->m,
                                .d = p->d,
                                .fq = t->fq,
                                .fk = t->fk,
                                .v = t->v,
                                .o = t->o,
                                .den = t->den,
                                .eps = p->eps,
                                .s0 = p->state ? t->s0 : NULL,
                                .z0 = p->state ? t->z0 : NULL,
                                .s1 = t->s1,
                                .z1 = t->z1};
}

/* In scratch of exactly the requested size, full of NaN. */
static void run(const struct engine *g, const struct linear_attn *a, const struct linear_grad *d)
{
    const struct linear_impl *const impl = engine_linear(g);
    const size_t bytes = round_up(impl->need(a, g->threads, d != NULL), 64);
    void *scratch = aligned_alloc(64, bytes);

    cr_assert_not_null(scratch);
    memset(scratch, 0xff, bytes);
    if (d)
        impl->backward(g, a, d, scratch);
    else
        impl->forward(g, a, scratch);
    free(scratch);
}

/* ---- forward ------------------------------------------------------------------------------------
 */

/* Weight of key j for a query: a product of two rows of features. */
static double weight(const float *q, const float *k, int m)
{
    double w = 0;

    for (int x = 0; x < m; x++)
        w += (double)q[x] * (double)k[x];
    return w;
}

/* Error of one output in units of its bound. Numerator and divisor are sums of K products of a sum
 * of m, all rounded at most K + m times and thrice more; the state adds as many terms as one key.
 */
static double output_error(const struct problem *t, int b, int i, int h, int e, bool reference)
{
    const struct shape *p = &t->p;
    const int kv = h / (p->H / p->Hkv);
    const size_t at = (size_t)((b * p->L + i) * p->H + h), state = (size_t)(b * p->Hkv + kv);
    const float *q = t->fq + at * (size_t)p->m;
    double num = 0, den = (double)p->eps, size = 0;

    for (int j = 0; j <= p->M + i; j++) {
        const size_t key = (size_t)((b * t->K + j) * p->Hkv + kv);
        const double w = weight(q, t->fk + key * (size_t)p->m, p->m);
        const double v = (double)t->v[key * (size_t)p->d + (size_t)e];
        num += w * v, den += w, size += w * fabs(v);
    }
    for (int x = 0; p->state && x < p->m; x++) {
        const size_t row = state * (size_t)p->m + (size_t)x;
        const double s = (double)q[x] * (double)t->s0[row * (size_t)p->d + (size_t)e];
        num += s, size += fabs(s), den += (double)q[x] * (double)t->z0[row];
    }
    const double o = num / den, terms = t->K + p->m + 4;
    const double bound =
        reference ? 2 * U * fabs(o) + 1e-12 * size / den : terms * U * (size / den + 2 * fabs(o));
    return in_bounds((double)t->o[at * (size_t)p->d + (size_t)e], o, bound);
}

static double forward_error(const struct problem *t, bool reference)
{
    const struct shape *p = &t->p;
    double worst = 0;

    for (int row = 0; row < p->B * p->L * p->H; row++)
        for (int e = 0; e < p->d; e++)
            worst = fmax(worst, output_error(t, row / (p->L * p->H), row / p->H % p->L, row % p->H,
                                             e, reference));
    return worst;
}

/* s1 and z1: a sum of K products each. */
static double state_error(const struct problem *t)
{
    const struct shape *p = &t->p;
    double worst = 0;

    for (size_t at = 0; at < t->states * (size_t)p->m * (size_t)(p->d + 1); at++) {
        const int e = (int)(at % (size_t)(p->d + 1)), row = (int)(at / (size_t)(p->d + 1));
        const int state = row / p->m, b = state / p->Hkv, kv = state % p->Hkv, x = row % p->m;
        const bool of_z = e == p->d;
        double want = !p->state ? 0 : (double)(of_z ? t->z0[row] : t->s0[row * p->d + e]);
        double size = fabs(want);
        for (int j = 0; j < t->K; j++) {
            const int key = (b * t->K + j) * p->Hkv + kv;
            const double v = of_z ? 1 : (double)t->v[key * p->d + e];
            want += (double)t->fk[key * p->m + x] * v;
            size += fabs((double)t->fk[key * p->m + x] * v);
        }
        const double got = (double)(of_z ? t->z1[row] : t->s1[row * p->d + e]);
        worst = fmax(worst, in_bounds(got, want, (t->K + 2) * U * size));
    }
    return worst;
}

ParameterizedTestParameters(linear_attn, is_its_equation) { return every_backend(); }
ParameterizedTest(int *b, linear_attn, is_its_equation, .timeout = 60)
{
    for (int threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
            const struct engine g = open_engine(backends[*b]->name, threads);
            struct problem t;
            make(&t, &shapes[i]);
            const struct linear_attn a = attn_of(&t);
            run(&g, &a, NULL);
            const double worst = forward_error(&t, g.backend == &backend_ref);
            cr_expect_leq(worst, 1, "%s, shape %zu: %.2f x its bound", g.backend->name, i, worst);
            const double state = state_error(&t);
            cr_expect_leq(state, 1, "%s, shape %zu: state %.2f", g.backend->name, i, state);
            cr_expect(guards_intact(t.o, t.queries * (size_t)t.p.d));
            cr_expect(guards_intact(t.s1, t.states * (size_t)(t.p.m * t.p.d)));
            cr_expect(guards_intact(t.z1, t.states * (size_t)t.p.m));
            drop(&t);
        }
}

/* Segments of any lengths, with the state passed on, give the result of one pass; its bound holds
 * for them too, because no sum has more terms. */
ParameterizedTestParameters(linear_attn, segments_are_one_pass) { return every_backend(); }
ParameterizedTest(int *b, linear_attn, segments_are_one_pass, .timeout = 60)
{
    static const int pieces[][4] = {{1, 1, 1, 1}, {5, 1, 70, 64}, {64, 3, 1, 130}};
    const struct engine g = open_engine(backends[*b]->name, 1);

    for (size_t k = 0; k < ARRAY_LEN(pieces); k++) {
        const struct shape p = {1, 2, 1, 140, 0, 12, 10, true, 0};
        struct problem t;
        make(&t, &p);
        struct linear_attn a = attn_of(&t);
        float *s[2] = {guarded(120), t.s1}, *z[2] = {guarded(12), t.z1};
        memcpy(s[0], t.s0, 120 * sizeof(float)), memcpy(z[0], t.z0, 12 * sizeof(float));
        int from = 0;
        for (int done = 0; done < p.L; done += a.L, from = !from) {
            a.L = min_int(pieces[k][done % 4], p.L - done);
            a.fq = t.fq + done * p.H * p.m, a.fk = t.fk + done * p.m, a.v = t.v + done * p.d;
            a.o = t.o + done * p.H * p.d, a.den = t.den + done * p.H;
            a.s0 = s[from], a.z0 = z[from], a.s1 = s[!from], a.z1 = z[!from];
            run(&g, &a, NULL);
        }
        const double worst = forward_error(&t, false);
        cr_expect_leq(worst, 1, "%s, pieces %zu: %.2f", g.backend->name, k, worst);
        release(s[0]), release(z[0]);
        drop(&t);
    }
}

/* ---- backward -------------------------------------------------------------------------------- */

struct sum_of {
    const struct engine *g;
    struct problem *t;
};

/* d_o . o */
static double value(void *ctx)
{
    const struct sum_of *s = ctx;
    const struct linear_attn a = attn_of(s->t);
    double sum = 0;

    run(s->g, &a, NULL);
    for (size_t i = 0; i < s->t->queries * (size_t)s->t->p.d; i++)
        sum += (double)s->t->o[i] * (double)s->t->d_o[i];
    return sum;
}

static void backward(const struct engine *g, struct problem *t)
{
    const struct linear_attn a = attn_of(t);
    const struct linear_grad d = {t->d_o, t->d_fq, t->d_fk, t->d_v};

    run(g, &a, NULL);
    run(g, &a, &d);
    cr_expect(guards_intact(t->d_fq, t->queries * (size_t)t->p.m));
    cr_expect(guards_intact(t->d_fk, t->keys * (size_t)t->p.m));
    cr_expect(guards_intact(t->d_v, t->keys * (size_t)t->p.d));
}

Test(linear_attn, gradients_of_the_reference_are_differences, .timeout = 60)
{
    struct engine g;

    cr_assert_eq(engine_open(&g, backend_ref.name, 1, NULL, NULL), OK);
    for (size_t i = 0; i < 9; i++) {
        struct problem t;
        make(&t, &shapes[i]);
        backward(&g, &t);
        double noise = 0; /* each output is rounded once */
        for (size_t k = 0; k < t.queries * (size_t)t.p.d; k++)
            noise += U * fabs((double)t.o[k] * (double)t.d_o[k]);
        struct sum_of of = {&g, &t};
        const struct scalar f = {.at = value, .ctx = &of, .noise = noise, .step = 0x1p-6};
        const double zero = 1e-3; /* q and k of a single pair have no gradient */
        expect_gradient(&f, "fq", t.fq, t.d_fq, t.queries * (size_t)t.p.m, 64 * U, zero);
        expect_gradient(&f, "fk", t.fk, t.d_fk, t.keys * (size_t)t.p.m, 64 * U, zero);
        expect_gradient(&f, "v", t.v, t.d_v, t.keys * (size_t)t.p.d, 64 * U, zero);
        drop(&t);
    }
}

/* In units of 2 (K + m + d) U, the steps of the longest chain of sums, of the largest entry. */
static double gradient_error(const float *got, const float *want, size_t n, const struct shape *p)
{
    const double steps = p->L + p->M + p->m + p->d;
    double worst = 0, largest = 0;

    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)got[i] - (double)want[i]);
        worst = d <= worst ? worst : d;
        largest = fmax(largest, fabs((double)want[i]));
    }
    return worst / (2 * steps * U * largest + 1e-6);
}

ParameterizedTestParameters(linear_attn, gradients_are_the_references) { return every_backend(); }
ParameterizedTest(int *b, linear_attn, gradients_are_the_references, .timeout = 60)
{
    for (int threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
            const struct engine g = open_engine(backends[*b]->name, threads);
            struct engine ref;
            struct problem t, want;
            cr_assert_eq(engine_open(&ref, backend_ref.name, 1, NULL, NULL), OK);
            make(&t, &shapes[i]), make(&want, &shapes[i]);
            backward(&g, &t), backward(&ref, &want);
            const size_t m = (size_t)t.p.m, d = (size_t)t.p.d;
            const double e_q = gradient_error(t.d_fq, want.d_fq, t.queries * m, &t.p);
            const double e_k = gradient_error(t.d_fk, want.d_fk, t.keys * m, &t.p);
            const double e_v = gradient_error(t.d_v, want.d_v, t.keys * d, &t.p);
            cr_expect(e_q <= 1 && e_k <= 1 && e_v <= 1, "%s, shape %zu: %.2f %.2f %.2f",
                      g.backend->name, i, e_q, e_k, e_v);
            drop(&t), drop(&want);
        }
}

/* One token: 4 H m d; several tokens also attend to each other inside their chunk. */
Test(linear_attn, flop)
{
    const struct linear_attn one = {.B = 3, .H = 4, .L = 1, .Hkv = 4, .m = 5, .d = 7};
    struct linear_attn many = one;

    cr_expect_eq(linear_flop(&one), 3 * 4 * 4 * 5 * 7);
    many.L = 256;
    cr_expect_eq(linear_flop(&many), 3 * 4 * 256 * (LINEAR_CHUNK * (5 + 7) + 4 * 5 * 7));
}
