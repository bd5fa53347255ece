/* SPDX-License-Identifier: MIT
 *
 * The funnel: its causal form row by row whatever follows, gradients against finite differences and
 * the reference's on every backend, odd lengths, blocks that are nothing but layers, refusals. */
#include "tests/support/ffn_case.h"
#include "variants/model/funnel_net.h"
#include "variants/parts/parts.h"

struct funnel_case {
    struct engine g;
    struct funnel f;
    struct arena a;
    float *d_y;
};

static struct config funnel_config(bool causal)
{
    return (struct config){.D = 6,
                           .H = 2,
                           .dh = 3,
                           .F = 7,
                           .scale = 0.6f,
                           .causal = causal,
                           .ffn = &ffn_gelu_tanh,
                           .ffn_bias = true,
                           .ln_eps = 1e-5f};
}

/* Numbers of layers in turn, up to 3 blocks and 2 layers behind them. */
static void funnel_open(struct funnel_case *t, int form, bool causal, const char *backend,
                        int threads, int B, int T)
{
    static const int layers[][3] = {{1, 0, 0}, {1, 2, 0}, {2, 1, 1}, {1, 1, 1}};
    static const int blocks[] = {1, 2, 3, 3}, behind[] = {1, 1, 2, 0};
    const struct config c = funnel_config(causal);
    const size_t n = (size_t)(B * T * c.D);
    struct err e = {""};

    *t = (struct funnel_case){.g = open_engine(backend, threads)};
    cr_assert_eq(funnel_init(&t->f, &c, layers[form], blocks[form], behind[form], &e), OK, "%s",
                 e.msg);
    cr_assert_eq(funnel_bind(&t->f, &t->g, B, T, &t->a, &e), OK, "%s", e.msg);
    cr_assert_eq(arena_place(&t->a, HUGE_NEVER, NULL, NULL, &e), OK, "%s", e.msg);
    memset(t->a.base, 0xff, t->a.size);
    cr_assert_eq(funnel_bind(&t->f, &t->g, B, T, &t->a, &e), OK, "%s", e.msg);
    params_init(&t->f.params, SEED);
    for (int i = 0; i < t->f.params.n; i++)
        quantise(t->f.params.v[i].data, t->f.params.v[i].n);
    for (int b = 0; b < B; b++) /* the same beginning for every T */
        rng_normal(t->f.x + b * T * c.D, (size_t)(T * c.D), SEED + (uint64_t)b, rng_stream("x"), 0,
                   1);
    quantise(t->f.x, n);
    t->d_y = normal(n, "d_y", 0, 1);
    funnel_build_tables(&t->f, &t->g);
}

static void funnel_close(struct funnel_case *t)
{
    release(t->d_y);
    funnel_free(&t->f);
    arena_release(&t->a);
}
enum { FORMS = 4 };

/* ---- what is known -------------------------------------------------------------------------- */

/* On the reference a row does not depend on its neighbours' number, so that it is the same to the
 * last bit. */
Test(funnel, causal_rows_do_not_see_what_follows, .timeout = 60)
{
    enum { T = 13 };

    for (int form = 0; form < FORMS; form++) {
        struct funnel_case all;
        funnel_open(&all, form, true, "ref", 1, 1, T);
        const float *want = funnel_forward(&all.f, &all.g);
        for (int cut = 1; cut < T; cut++) {
            struct funnel_case t;
            funnel_open(&t, form, true, "ref", 1, 1, cut);
            const float *got = funnel_forward(&t.f, &t.g);
            for (int i = 0; i < cut * t.f.c.D; i++)
                cr_assert(got[i] == want[i], "form %d, cut %d: number %d is %.9g, not %.9g", form,
                          cut, i, (double)got[i], (double)want[i]);
            funnel_close(&t);
        }
        funnel_close(&all);
    }
}

/* The published form sees both ways: the first row depends on the last. */
Test(funnel, published_rows_see_both_ways)
{
    for (int form = 0; form < FORMS; form++)
        for (int causal = 0; causal < 2; causal++) {
            struct funnel_case t;
            funnel_open(&t, form, causal, "ref", 1, 1, 8);
            const float before = funnel_forward(&t.f, &t.g)[0];
            t.f.x[8 * t.f.c.D - 1] += 1;
            cr_expect_eq(funnel_forward(&t.f, &t.g)[0] == before, causal, "form %d", form);
            funnel_close(&t);
        }
}

Test(funnel, halves_round_up)
{
    for (int T = 1; T < 12; T++) {
        struct funnel_case t;
        funnel_open(&t, 2, false, "ref", 1, 1, T);
        cr_expect_eq(funnel_groups(&t.f), (T + 3) / 4);
        funnel_close(&t);
    }
}

/* ---- gradients ------------------------------------------------------------------------------ */

static double funnel_value(void *ctx)
{
    struct funnel_case *t = ctx;
    double sum = 0;

    funnel_build_tables(&t->f, &t->g);
    const float *y = funnel_forward(&t->f, &t->g);
    for (int i = 0; i < t->f.B * t->f.T * t->f.c.D; i++)
        sum += (double)y[i] * (double)t->d_y[i];
    return sum;
}

/* The value is a sum of B T D products of numbers near 1 that went through up to 6 layers, some 64
 * roundings each that are not of one sign. A bias of keys shifts all scores of a row alike but for
 * the term of distances, whose part may cancel: hence the absolute bound. */
Test(funnel, is_differentiated, .timeout = 120)
{
    for (int form = 0; form < FORMS; form++)
        for (int causal = 0; causal < 2; causal++) {
            struct funnel_case t;
            char name[96];
            funnel_open(&t, form, causal, "ref", 1, 1, 7);
            const size_t n = (size_t)(7 * t.f.c.D);
            const struct scalar f = {funnel_value, &t, 64 * U * 2 * sqrt((double)n), 0x1p-7};
            float *d_x = guarded(n);
            funnel_forward(&t.f, &t.g);
            params_zero_grad(&t.f.params);
            memcpy(d_x, funnel_backward(&t.f, &t.g, t.d_y), n * sizeof(float));
            snprintf(name, sizeof(name), "form %d %d x", form, causal);
            expect_gradient(&f, name, t.f.x, d_x, n, 512 * U, 4 * f.noise / f.step);
            for (int i = 0; i < t.f.params.n; i++) {
                struct param *w = &t.f.params.v[i];
                snprintf(name, sizeof(name), "form %d %d %.64s", form, causal, w->name);
                expect_gradient(&f, name, w->data, w->grad, w->n, 512 * U, 4 * f.noise / f.step);
            }
            release(d_x), funnel_close(&t);
        }
}

ParameterizedTestParameters(funnel, as_the_reference) { return every_backend(); }
ParameterizedTest(int *b, funnel, as_the_reference, .timeout = 60)
{
    static const int lengths[] = {1, 2, 5, 16, 37};

    if (backend_usable(backends[*b], NULL) != OK)
        cr_skip_test("%s cannot run here", backends[*b]->name);
    for (size_t k = 0; k < ARRAY_LEN(lengths); k++)
        for (int form = 0; form < FORMS; form++)
            for (int causal = 0; causal < 2; causal++) {
                struct funnel_case got, want;
                char what[96];
                snprintf(what, sizeof(what), "%s, form %d, %s, T %d", backends[*b]->name, form,
                         causal ? "causal" : "published", lengths[k]);
                funnel_open(&got, form, causal, backends[*b]->name, 1 + form % 2, 2, lengths[k]);
                funnel_open(&want, form, causal, "ref", 1, 2, lengths[k]);
                const size_t n = (size_t)(2 * lengths[k] * want.f.c.D);
                cr_expect_lt(
                    cell_error(funnel_forward(&got.f, &got.g), funnel_forward(&want.f, &want.g), n),
                    1, "%s", what);
                params_zero_grad(&got.f.params), params_zero_grad(&want.f.params);
                const float *x = funnel_backward(&got.f, &got.g, got.d_y);
                const float *y = funnel_backward(&want.f, &want.g, want.d_y);
                double largest = 0;
                for (size_t i = 0; i < n; i++)
                    largest = fmax(largest, fabs((double)y[i]));
                for (size_t i = 0; i < n; i++)
                    cr_assert_leq(fabs((double)x[i] - (double)y[i]), 1e-4 * largest, "%s: d_x",
                                  what);
                funnel_close(&got), funnel_close(&want);
            }
}

/* ---- refusals ------------------------------------------------------------------------------- */

Test(funnel, sizes_without_sense_are_refused)
{
    static const int none[] = {1, 0}, one[] = {1};
    struct config c = funnel_config(false);
    struct funnel f;
    struct err e = {""};

    cr_expect_eq(funnel_init(&f, &c, none, 2, 1, &e), E_USAGE);
    cr_expect_eq(funnel_init(&f, &c, one, 0, 1, &e), E_USAGE);
    cr_expect_eq(funnel_init(&f, &c, one, 1, FUNNEL_LAYERS, &e), E_USAGE);
    c.D = 5;
    cr_expect_eq(funnel_init(&f, &c, one, 1, 1, &e), E_USAGE);
    cr_expect(strstr(e.msg, "  -> an even width"), "%s", e.msg);
}
