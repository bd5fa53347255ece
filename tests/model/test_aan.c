/* SPDX-License-Identifier: MIT
 *
 * Average attention: its sub-layer against the equations in double, with a sum carried in and out,
 * on every backend; gradients against finite differences; counts beyond float precision. Streaming,
 * forgetting and cost are those of all states: test_state.c. */
#include "tests/support/bound_layer.h"

/* Rows are wider than the columns that are summed together. */
enum { B = 2, L = 9, D = 66, F = 13 };

static void open_bound(struct bound *t, const char *backend, int threads)
{
    bound_open(t, config_default(variant_find("aan"), D, 2, D / 2, F, 1, 9), backend, threads, B, L,
               0.5f);
    for (int e = 0; e < F; e++) /* half of the units are off, none near its corner */
        ((float *)params_find(&t->l.p, "aan.ff.1.bias")->data)[e] = e % 2 ? -4 : 4;
}

/* What was committed before: a sum of `count` rows. */
static void begin_at(struct bound *t, const float *sum, double count)
{
    struct carried at;

    cr_assert(t->l.list.at->kind->carries(t->l.list.at, 0, &at) && at.n == B * D);
    memcpy(at.at, sum, at.n * sizeof(float));
    cr_assert(t->l.list.at->kind->carries(t->l.list.at, 1, &at) && at.n == 2);
    at.at[0] = (float)floor(count / 0x1p20);
    at.at[1] = (float)fmod(count, 0x1p20);
}

/* One row of sequence b, from the mean to it. */
static void row_by_hand(const struct bound *t, double *y, const float *x, const double *mean)
{
    double hidden[F], both[2 * D], gate[2 * D];

    affine(hidden, bound_param(t, "aan.ff.1.weight"), bound_param(t, "aan.ff.1.bias"), mean, F, D);
    for (int e = 0; e < F; e++)
        hidden[e] = fmax(hidden[e], 0);
    affine(both + D, bound_param(t, "aan.ff.2.weight"), bound_param(t, "aan.ff.2.bias"), hidden, D,
           F);
    to_doubles(both, x, D);
    affine(gate, bound_param(t, "aan.gate.weight"), bound_param(t, "aan.gate.bias"), both, 2 * D,
           2 * D);
    for (int e = 0; e < D; e++)
        y[e] = both[e] * sigma(gate[e]) + both[D + e] * sigma(gate[D + e]);
}

/* The rule of a whole case, which has as many steps. */
static double error_of(const struct bound *t, const float *sum, double count)
{
    float *const want = fenced(B * L * D);

    for (int b = 0; b < B; b++) {
        double all[D], mean[D], y[D];
        to_doubles(all, sum + b * D, D);
        for (int i = 0; i < L; i++) {
            const float *x = t->x + (b * L + i) * D;
            for (int e = 0; e < D; e++)
                mean[e] = (all[e] += (double)x[e]) / (count + i + 1);
            row_by_hand(t, y, x, mean);
            to_floats(want + (b * L + i) * D, y, D);
        }
    }
    return case_error(t->y, want, B * L * D);
}

TEST_EACH(int *b, aan, is_its_equations, every_backend())
{
    static const double counts[] = {0, 3, 0x1p24 + 7};

    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        struct bound t;
        open_bound(&t, backends[*b]->name, 2);
        float *sum = normals(B * D, "sum", 0, i ? (float)counts[i] : 0);
        begin_at(&t, sum, counts[i]);
        bound_run(&t, 0, L);
        const double error = error_of(&t, sum, counts[i]);
        cr_expect_lt(error, 1, "%s, after %g rows: %.3g", backends[*b]->name, counts[i], error);
        struct carried at;
        sublayer_commit(t.l.list.at, L);
        cr_assert(t.l.list.at->kind->carries(t.l.list.at, 1, &at));
        cr_expect_eq((double)at.at[0] * 0x1p20 + (double)at.at[1], counts[i] + L);
        cr_assert(t.l.list.at->kind->carries(t.l.list.at, 0, &at));
        for (int k = 0; k < B * D; k++) {
            double want = (double)sum[k];
            for (int r = 0; r < L; r++)
                want += (double)t.x[(k / D * L + r) * D + k % D];
            cr_expect_leq(in_bounds((double)at.at[k], want, 2 * U * fabs(want)), 1);
        }
    }
}

TEST_EACH(int *b, aan, gradients_are_differences, every_backend(), .timeout = 240)
{
    struct bound t;

    open_bound(&t, backends[*b]->name, 1);
    float *sum = normals(B * D, "sum", 0, 2);
    begin_at(&t, sum, 3);
    bound_expect_gradients(&t);
}
