/* SPDX-License-Identifier: MIT
 *
 * Convolutions as sub-layers against their equation in double, with rows of an earlier segment and
 * without, and their gradients against differences; what the letters of a layer make. That cuts of
 * a text do not matter: tests/model/test_lm.c; golden files compare whole models. */
#include "tests/support/attn_case.h"
#include "tests/support/every_backend.h"
#include "tests/support/finite.h"
#include "tests/support/model.h"

#include <criterion/parameterized.h>

enum { D = 6, B = 2, L = 7, N = B * L * D };

struct bare {
    struct engine g;
    struct config c;
    struct params p;
    struct arena a;
    struct sublayers sublayers;
    float *x, *past, *dy, *y, *d_x; /* [B,L,D] */
    int M;
};

static void bind_bare(struct bare *t)
{
    const enum mem_kind kind = t->M ? MEM_HIDDEN : MEM_NONE;
    const struct extent max = {B, L, t->M};
    struct err e = {""};

    params_place(&t->p, &t->a);
    cr_assert_eq(sublayers_bind(&t->sublayers, &t->g, &t->p, kind, max, &t->a, &e), OK, "%s",
                 e.msg);
    cr_assert_eq(sublayers_bind_grad(&t->sublayers, &t->g, &t->a, &e), OK, "%s", e.msg);
    params_place_grad(&t->p, &t->a);
}

static const float *param(const struct bare *t, const char *name)
{
    for (int i = 0; i < t->p.n; i++)
        if (strstr(t->p.v[i].name, name))
            return t->p.v[i].data;
    cr_assert_fail("no parameter %s", name);
    return NULL;
}

static void open_bare(struct bare *t, const char *backend, char letter, int kernel, int M)
{
    *t = (struct bare){.g = open_engine(backend, 2), .M = M};
    t->c = config_default(variant_find("cpe"), D, 2, 3, 5, 1, 0);
    t->c.cpe_kernel = t->c.sep_kernel = kernel;
    cr_assert_eq(sublayers_init_bare(&t->sublayers, &t->c, letter, &t->p, 0, NULL), OK);
    bind_bare(t);
    cr_assert_eq(arena_place(&t->a, HUGE_NEVER, NULL, NULL, NULL), OK);
    memset(t->a.base, 0xff, t->a.size);
    bind_bare(t);
    params_init(&t->p, SEED, 1);
    for (int i = 0; i < t->p.n; i++)
        quantise(t->p.v[i].data, t->p.v[i].n);
    for (int i = 0; letter == 'b' && i < 2 * D; i++) /* far from where ReLU has no slope */
        ((float *)param(t, "wide.point.bias"))[i] = i % 3 ? 8 : -8;
    t->x = normal(N, "rows", 0, 1), t->past = normal(N, "past", 0, 1);
    t->dy = normal(N, "dy", 0, 1);
    t->y = guarded(N), t->d_x = guarded(N);
    quantise(t->x, N);
    if (M) {
        params_pack(&t->p, &t->g);
        sublayer_remember(&t->g, t->sublayers.at, t->sublayers.work, t->past, B, M);
    }
}

static void close_bare(struct bare *t)
{
    release(t->x), release(t->past), release(t->dy), release(t->y), release(t->d_x);
    sublayers_free(&t->sublayers), params_free(&t->p), arena_release(&t->a);
}

static struct sublayer_input run_bare(struct bare *t)
{
    struct sublayer *const s = t->sublayers.at;

    params_pack(&t->p, &t->g);
    memcpy(t->sublayers.work->x, t->x, sizeof(float) * N);
    const struct sublayer_input from =
        sublayer_source(&t->g, s, t->sublayers.work, t->sublayers.work->x, B, L);
    s->kind->forward(&t->g, s, t->sublayers.work, from, (struct act){.y = t->y});
    return from;
}

/* Row i of sequence b, counted from the first new one; zeros before all rows. */
static double row_at(const struct bare *t, int b, int i, int e)
{
    if (i >= 0)
        return (double)t->x[(b * L + i) * D + e];
    return i >= -t->M ? (double)t->past[(b * t->M + t->M + i) * D + e] : 0;
}

static double sum_at(const struct bare *t, int kernel, int b, int i, int e)
{
    double sum = 0;

    for (int s = 0; s < kernel; s++)
        sum += (double)t->p.v[0].data[s * D + e] * row_at(t, b, i - kernel + 1 + s, e);
    return sum;
}

/* Channel o of a separable convolution of the input. */
static double branch_at(const struct bare *t, const char *name, int taps, int b, int i, int o)
{
    char depth[32], weight[32], bias[32];
    double y;

    snprintf(depth, sizeof(depth), "%s.depth", name);
    snprintf(weight, sizeof(weight), "%s.point.weight", name);
    snprintf(bias, sizeof(bias), "%s.point.bias", name);
    y = (double)param(t, bias)[o];
    for (int k = 0; k < D; k++)
        for (int s = 0; s < taps; s++)
            y += (double)param(t, weight)[o * D + k] * (double)param(t, depth)[s * D + k] *
                 row_at(t, b, i - taps + 1 + s, k);
    return y;
}

/* LN(relu(sep_11) + [sep_7; 0]) of a row, zeros before all rows. */
static void joined_at(const struct bare *t, int b, int i, double h[2 * D])
{
    double mean = 0, variance = 0;

    memset(h, 0, 2 * D * sizeof(*h));
    if (i < -t->M)
        return;
    for (int o = 0; o < 2 * D; o++) {
        h[o] = fmax(0, branch_at(t, "wide", 11, b, i, o));
        h[o] += o < D / 2 ? branch_at(t, "narrow", 7, b, i, o) : 0;
        mean += h[o] / (2 * D);
    }
    for (int o = 0; o < 2 * D; o++)
        variance += (h[o] - mean) * (h[o] - mean) / (2 * D);
    for (int o = 0; o < 2 * D; o++)
        h[o] = (h[o] - mean) / sqrt(variance + (double)t->c.ln_eps) *
                   (double)param(t, "norm.weight")[o] +
               (double)param(t, "norm.bias")[o];
}

static double branches_by_hand(const struct bare *t, int b, int i, int e)
{
    double y = (double)param(t, "last.point.bias")[e], h[2 * D];

    for (int s = 0; s < 7; s++) {
        joined_at(t, b, i - 6 + s, h);
        for (int o = 0; o < 2 * D; o++)
            y += (double)param(t, "last.point.weight")[e * 2 * D + o] *
                 (double)param(t, "last.depth")[s * 2 * D + o] * h[o];
    }
    return y;
}

static double by_hand(const struct bare *t, char letter, int kernel, int b, int i, int e)
{
    if (letter == 'b')
        return branches_by_hand(t, b, i, e);
    if (letter == 'c')
        return sum_at(t, kernel, b, i, e) + (double)t->p.v[1].data[e];
    double y = (double)t->p.v[2].data[e];
    for (int k = 0; k < D; k++)
        y += (double)t->p.v[1].data[e * D + k] * sum_at(t, kernel, b, i, k);
    return y;
}

static const int kernels[] = {1, 4, L + 4};

ParameterizedTestParameters(sublayer_conv, is_its_equation) { return every_backend(); }
ParameterizedTest(int *at, sublayer_conv, is_its_equation)
{
    for (const char *letter = "cwb"; *letter; letter++)
        for (size_t k = 0; k < ARRAY_LEN(kernels); k++)
            for (int M = 0; M <= 3; M += 3) {
                /* with M it remembers the kernel - 1 newest of these rows */
                struct bare t;
                float want[N];
                open_bare(&t, backends[*at]->name, *letter, kernels[k], M);
                run_bare(&t);
                for (int i = 0; i < N; i++)
                    want[i] = (float)by_hand(&t, *letter, kernels[k], i / D / L, i / D % L, i % D);
                cr_expect_lt(case_error(t.y, want, N), 1, "%c, %s, kernel %d, M %d", *letter,
                             backends[*at]->name, kernels[k], M);
                cr_expect(guards_intact(t.y, N));
                close_bare(&t);
            }
}

static double weighted(void *ctx)
{
    struct bare *t = ctx;
    double sum = 0;

    run_bare(t);
    for (int i = 0; i < N; i++)
        sum += (double)t->y[i] * (double)t->dy[i];
    return sum;
}

/* N numbers of some 2, with weights of deviation 1, each off by some U. */
Test(sublayer_conv, reference_is_the_derivative)
{
    for (const char *letter = "cwb"; *letter; letter++)
        for (size_t k = 0; k < ARRAY_LEN(kernels); k++)
            for (int M = 0; M <= 3; M += 3) {
                struct bare t;
                open_bare(&t, "ref", *letter, kernels[k], M);
                const struct scalar f = {weighted, &t, 8 * U * sqrt(N), 0x1p-7};
                const struct sublayer_input from = run_bare(&t);
                params_zero_grad(&t.p);
                t.sublayers.at->kind->backward(&t.g, t.sublayers.at, t.sublayers.work, from, t.d_x,
                                               t.dy, from.M);
                cr_expect(guards_intact(t.d_x, N));
                expect_gradient(&f, "x", t.x, t.d_x, N, 64 * U, 2 * f.noise / f.step);
                for (int i = 0; i < t.p.n; i++)
                    expect_gradient(&f, t.p.v[i].name, t.p.v[i].data, t.p.v[i].grad, t.p.v[i].n,
                                    64 * U, 2 * f.noise / f.step);
                close_bare(&t);
            }
}

/* ---- letters ------------------------------------------------------------------------------ */

static int with_name(const struct lm *m, const char *part)
{
    int n = 0;

    for (int i = 0; i < m->params.n; i++)
        n += strstr(m->params.v[i].name, part) != NULL;
    return n;
}

/* A sub-layer for each letter; attention that comes again has the weights of before. */
Test(sublayer_conv, letters_make_the_sublayers_of_a_layer)
{
    struct config c = config_default(variant_find("evolved"), 12, 3, 5, 17, 2, 11);
    struct lm m;

    cr_assert_eq(lm_init(&m, &c, NULL), OK);
    cr_assert_eq(m.sublayers.n, 8);
    cr_expect_eq(with_name(&m, "attn.q"), 4);
    cr_expect_eq(with_name(&m, ".mattn.q"), 2);
    cr_expect_eq(with_name(&m, "branches.last.depth"), 2);
    cr_expect_eq(with_name(&m, ".ff.ln."), 4);
    cr_expect_neq(m.sublayers.at[2].at_weights, m.sublayers.at[0].at_weights);
    cr_expect_neq(m.sublayers.at[2].at_norm, m.sublayers.at[0].at_norm);
    cr_expect(m.sublayers.at[0].c->H == 6 && m.sublayers.at[0].c->dh == 3);
    cr_expect(m.sublayers.at[2].c->H == 3 && m.sublayers.at[2].c->dh == 5);
    lm_free(&m);

    c = config_default(variant_find("sepconv"), 12, 3, 5, 17, 2, 11);
    cr_assert_eq(lm_init(&m, &c, NULL), OK);
    cr_assert_eq(m.sublayers.n, 8);
    cr_expect_eq(sublayers_attentions(&m.sublayers), 4);
    cr_expect_eq(m.sublayers.at[2].at_weights, m.sublayers.at[0].at_weights);
    cr_expect_eq(m.sublayers.at[2].at_norm, m.sublayers.at[0].at_norm);
    cr_expect_neq(m.sublayers.at[4].at_weights, m.sublayers.at[0].at_weights);
    cr_expect_eq(with_name(&m, "attn.q"), 2);
    cr_expect_eq(with_name(&m, "sep.depth"), 2);
    cr_expect_eq(with_name(&m, ".lnw."), 4);
    lm_free(&m);
}

Test(sublayer_conv, the_first_layer_alone_may_have_one)
{
    struct config c = config_default(variant_find("cpe"), 12, 3, 5, 17, 3, 11);
    struct lm m;

    for (int first = 0; first < 2; first++) {
        set_choice(&c, "cpe_layers", first ? "first" : "all");
        cr_assert_eq(lm_init(&m, &c, NULL), OK);
        cr_expect_eq(m.sublayers.n, first ? 7 : 9);
        cr_expect_eq(with_name(&m, "cpe.weight"), first ? 1 : 3);
        cr_expect_eq(m.sublayers.at[m.sublayers.n - 1].layer, 2);
        lm_free(&m);
    }
}

Test(sublayer_conv, letters_without_sense)
{
    static const char *const subs[] = {"fcw", "sff", "scwc", "shf", "srf", "mf", "mmsf", "sbbf"};
    struct err e;

    for (size_t i = 0; i < ARRAY_LEN(subs); i++) {
        struct config c = config_default(variant_find("cpe"), 12, 3, 5, 17, 2, 11);
        set_choice(&c, "subs", subs[i]);
        cr_expect_eq(config_check(&c, &e), E_USAGE, "%s", subs[i]);
    }
    for (int wiring = 0; wiring < WIRING_COUNT; wiring++) {
        struct config c = config_default(variant_find("cpe"), 12, 3, 5, 17, 2, 11);
        c.wiring = (enum wiring)wiring;
        cr_expect_eq(config_check(&c, &e) == OK, wiring == WIRING_PRE || wiring == WIRING_POST);
    }
}
