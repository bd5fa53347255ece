/* SPDX-License-Identifier: MIT
 *
 * Weights that are made of scores in another way than by softmax: their numbers, their gradients, and
 * which kernels have them. */
#include "tests/support/kernel/attn_terms.h"
#include "variants/parts/parts.h"

#define ALONE(name)                                                                                \
    {                                                                                              \
#name, &extra_##name                                                                       \
    }
static const struct {
    const char *name;
    const struct pos *extra;
} all[] = {ALONE(sigmoid), ALONE(stickbreaking), ALONE(softpick)};

enum { N = 7 };
static const double hidden = -INFINITY;

/* Of scores 0, log 2, -log 2, 0 before, after and between hidden keys. */
Test(attn_weigh, has_these_numbers)
{
    const double s[N] = {hidden, 0, log(2), hidden, -log(2), 0, hidden};
    const double want[][N] = {
        {0, 1. / 5, 1. / 3, 0, 1. / 9, 1. / 5, 0},
        {0, 1. / 2 / 3 * 2 / 3, 2. / 3 * 2 / 3, 0, 1. / 3, 0, 0},
        {0, 0, 1. / 2 / (1. / 2 + 1. / 4 + 1e-6), 0, 0, 0, 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        double p[N], keep[N];
        memcpy(p, s, sizeof(p));
        all[i].extra->weigh->forward(p, keep, N);
        for (int j = 0; j < N; j++)
            cr_expect_float_eq(p[j], want[i][j], 2e-6, "%s of key %d: %g", all[i].name, j, p[j]);
    }
}

Test(attn_weigh, of_no_keys_is_nothing)
{
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        double p[N], keep[N], d[N];
        for (int j = 0; j < N; j++)
            p[j] = hidden, d[j] = 1;
        all[i].extra->weigh->forward(p, keep, N);
        all[i].extra->weigh->backward(d, p, keep, N);
        for (int j = 0; j < N; j++)
            cr_expect(p[j] == 0 && d[j] == 0, "%s of key %d", all[i].name, j);
    }
}

/* Scores that exponentials of floats, or of doubles, do not reach. */
Test(attn_weigh, stays_finite)
{
    const double s[N] = {1e4, -1e4, 800, hidden, -800, 0, 1e4};

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        double p[N], keep[N], d[N] = {1, -2, 3, 4, 5, 6, 7};
        memcpy(p, s, sizeof(p));
        all[i].extra->weigh->forward(p, keep, N);
        all[i].extra->weigh->backward(d, p, keep, N);
        for (int j = 0; j < N; j++)
            cr_expect(p[j] >= 0 && p[j] <= 1 && isfinite(d[j]), "%s of key %d", all[i].name, j);
    }
}

static double loss(const struct attn_weigh *w, const double *s, const double *d)
{
    double p[N], keep[N], sum = 0;

    memcpy(p, s, sizeof(p));
    w->forward(p, keep, N);
    for (int j = 0; j < N; j++)
        sum += p[j] * d[j];
    return sum;
}

/* By differences of 10^-5, whose squares are what they are off by. */
Test(attn_weigh, has_its_gradients)
{
    const double s[N] = {0.7, hidden, -1.3, 2.1, -0.2, hidden, 0.4};
    const double d[N] = {1.1, 9, -0.6, 0.3, 2.0, 9, -1.7}, step = 1e-5;

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        const struct attn_weigh *const w = all[i].extra->weigh;
        double p[N], keep[N], got[N];
        memcpy(p, s, sizeof(p)), memcpy(got, d, sizeof(got));
        w->forward(p, keep, N);
        w->backward(got, p, keep, N);
        for (int j = 0; j < N; j++) {
            double up[N], down[N];
            memcpy(up, s, sizeof(up)), memcpy(down, s, sizeof(down));
            up[j] += step, down[j] -= step;
            const double want =
                s[j] == hidden ? 0 : (loss(w, up, d) - loss(w, down, d)) / (2 * step);
            cr_expect_float_eq(got[j], want, 1e-5, "%s of key %d: %g, not %g", all[i].name, j,
                               got[j], want);
        }
    }
}

/* Where all scores are near 0, softpick divides by little: weights and what is kept are floats here, as
 * products have them, and differences of 10^-3 of the smallest score are off by 10^-6 of the result;
 * each rounding by 2^-24 of it, or of what both terms of a difference have in common. */
Test(attn_weigh, softpick_has_gradients_of_small_scores)
{
    enum { FEW = 3 };
    static const double of[][FEW] = {{1e-5, -INFINITY, -INFINITY}, {1e-4, 2e-4, -INFINITY},
                                     {1e-3, -2e-3, -INFINITY},     {-1e-4, 3e-4, 5},
                                     {0.3, -INFINITY, -INFINITY},  {-1e-3, -2e-3, 1e-6},
                                     {2e-5, -INFINITY, 1.5e-5}};
    const double d[FEW] = {1.3, -0.4, 0.7};
    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        double p[FEW], keep[FEW], got[FEW], want[FEW], most = 0;
        memcpy(p, of[i], sizeof(p)), memcpy(got, d, sizeof(got));
        extra_softpick.weigh->forward(p, keep, FEW);
        for (int j = 0; j < FEW; j++)
            p[j] = (double)(float)p[j], keep[j] = (double)(float)keep[j];
        extra_softpick.weigh->backward(got, p, keep, FEW);
        for (int j = 0; j < FEW; j++) {
            double low[FEW], high[FEW], less[FEW], more[FEW];
            const double step = fabs(of[i][j]) * 1e-3;
            want[j] = 0;
            if (of[i][j] == hidden)
                continue;
            memcpy(less, of[i], sizeof(less)), memcpy(more, of[i], sizeof(more));
            less[j] -= step, more[j] += step;
            memcpy(low, less, sizeof(low)), memcpy(high, more, sizeof(high));
            extra_softpick.weigh->forward(low, keep, FEW),
                extra_softpick.weigh->forward(high, keep, FEW);
            for (int k = 0; k < FEW; k++)
                want[j] += (high[k] - low[k]) * d[k] / (more[j] - less[j]);
            most = fmax(most, fabs(want[j]));
        }
        for (int j = 0; j < FEW; j++)
            cr_expect_float_eq(got[j], want[j], 1e-5 * most, "row %zu, key %d: %.9g, not %.9g", i,
                               j, got[j], want[j]);
    }
}

Test(attn_weigh, products_have_it_and_fused_kernels_do_not)
{
    const struct shape shape = {2, 4, 2, 6, 5, 3};
    const struct scheme table = {0, 3, 0, 0};
    const struct more none = {0};
    struct wide w;
    const char *why = NULL;

    make_wide(&w, &shape, &table, &none);
    struct attn a = w.x.a;
    a.weigh = all[0].extra->weigh;
    cr_expect_eq(attn_terms(&a), TERM_WEIGH | TERM_SHARED_KEYS);
    cr_expect(!attn_supports(&a, TERMS_FUSED, &why));
    cr_expect_str_eq(why, "has softmax alone");
    cr_expect_null(attn_fault(&a));
    a.soft_cap = 2;
    cr_expect_not_null(attn_fault(&a));
    a.soft_cap = 0, a.sinks = 1, a.sink_logit = a.q;
    cr_expect_not_null(attn_fault(&a));
    free_wide(&w);
}
