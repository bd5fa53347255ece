/* SPDX-License-Identifier: MIT
 *
 * Gradients of activations and gated units: the reference's against the slopes in double. Sums are
 * added to what is there. Backends against the reference, threads, results over operands:
 * tests/check/test_op_cases.c. */
#include "tests/support/kernel/act_case.h"

static const float spreads[] = {1, 8, 100};

/* ---- act ---------------------------------------------------------------------------------- */

struct act_result {
    float *d_x, *d_bias, d_beta;
};

static struct act_result act_backward(const struct units *o, bool bias)
{
    struct act_result r = {fenced(o->size), fenced((size_t)o->n), 0.5f};
    float *sums = fenced((size_t)o->n);

    for (int e = 0; e < o->n; e++)
        r.d_bias[e] = 0.5f, sums[e] = NAN;
    backend_ref.ops.act_grad(
        &(struct act_grad){MEMBERS(o->, kind, d_y, rows, n), .d_x = r.d_x, .d_bias = r.d_bias,
                           .d_beta = o->kind == ACT_SWISH ? &r.d_beta : NULL, .sums = sums,
                           .x = o->kind == ACT_NONE ? NULL : o->x, .bias = bias ? o->a_bias : NULL,
                           .beta = &o->beta, .threads = 1});
    cr_expect(guards_intact(sums, (size_t)o->n) && guards_intact(r.d_x, o->size) &&
              guards_intact(r.d_bias, (size_t)o->n));
    return r;
}

/* An element as `exactly` says; a column of `rows` of them rounds as often when it is summed, and
 * the 0.5 that it is added to once. d beta = d_y t^2 s (1-s), a slope of its own. */
static void compare_act(const struct units *o, int bias)
{
    struct act_result got = act_backward(o, bias);
    double worst = 0, beta = 0.5, beta_bound = U;

    for (int e = 0; e < o->n; e++) {
        double sum = 0.5, sum_bound = U;
        for (int i = 0; i < o->rows; i++) {
            const int at = i * o->n + e;
            const double d_y = (double)o->d_y[at];
            const double t = (double)o->x[at] + (bias ? (double)o->a_bias[e] : 0);
            const struct exact x = exactly(o->kind, t, beta_of(o));
            const double bound = fabs(d_y) * x.slope_bound + 2 * U * fabs(d_y * x.slope);
            worst = fmax(worst, in_bounds((double)got.d_x[at], d_y * x.slope, bound));
            sum += d_y * x.slope;
            sum_bound += bound + (o->rows + 2) * U * fabs(d_y * x.slope);
            if (o->kind == ACT_SWISH) {
                const double z = beta_of(o) * t, part = d_y * t * t / (2 + exp(z) + exp(-z));
                beta += part;
                beta_bound += U * (6 * fabs(z) + 60 + o->rows + o->n) * fabs(part) + SMALLEST;
            }
        }
        cr_assert_leq(fabs((double)got.d_bias[e] - sum), sum_bound, "kind %d, %dx%d, column %d",
                      o->kind, o->rows, o->n, e);
    }
    cr_expect_leq(worst, 1, "kind %d, %dx%d: %.2f x its bound", o->kind, o->rows, o->n, worst);
    cr_expect_leq(fabs((double)got.d_beta - beta), beta_bound, "%dx%d: beta %g, not %g", o->rows,
                  o->n, (double)got.d_beta, beta);
}

Test(acts_grad, act) { each_units(spreads, ARRAY_LEN(spreads), 2, compare_act); }

/* A unit that is off passes nothing, not even a NaN. */
TEST_EACH(int *b, acts_grad, off_is_off, every_backend())
{
    const struct engine g = open_engine(backends[*b]->name, 1);
    const float x[3] = {-1, 0, 2}, d_y[3] = {INFINITY, NAN, INFINITY};
    float d_x[3];

    g.ops.act_grad(&(struct act_grad){
        .kind = ACT_RELU, .d_x = d_x, .d_y = d_y, .x = x, .rows = 1, .n = 3, .threads = 1});
    cr_expect(d_x[0] == 0 && d_x[1] == 0 && d_x[2] == INFINITY);
}

/* ---- glu ---------------------------------------------------------------------------------- */

struct glu_result {
    float *d_pre, *d_a_bias, *d_b_bias; /* d_pre as `pre`: columns of one matrix */
};

static struct glu_result glu_backward(const struct units *o, bool bias)
{
    struct glu_result r = {fenced(o->wide), fenced((size_t)o->n), fenced((size_t)o->n)};

    for (int e = 0; e < o->n; e++)
        r.d_a_bias[e] = r.d_b_bias[e] = 0.5f;
    backend_ref.ops.glu_grad(&(struct glu_grad){
        MEMBERS(o->, kind, d_y, ld, rows, n), .d_a = r.d_pre, .d_b = r.d_pre + o->n + 1,
        .d_a_bias = bias ? r.d_a_bias : NULL, .d_b_bias = bias ? r.d_b_bias : NULL, .a = o->pre,
        .b = o->pre + o->n + 1, .a_bias = bias ? o->a_bias : NULL,
        .b_bias = bias ? o->b_bias : NULL, .threads = 1});
    cr_expect(guards_intact(r.d_pre, o->wide));
    return r;
}

/* d_a = d_y b f', d_b = d_y f; what lies between the columns is not touched. */
static void compare_glu(const struct units *o, int bias)
{
    struct glu_result got = glu_backward(o, bias);
    double worst = 0;

    for (int e = 0; e < o->n; e++) {
        double sum[2] = {0.5, 0.5}, sum_bound[2] = {U, U};
        for (int i = 0; i < o->rows; i++) {
            const ptrdiff_t at = i * o->ld + e, other = at + o->n + 1;
            const double d_y = (double)o->d_y[i * o->n + e];
            const double a = (double)o->pre[at] + (bias ? (double)o->a_bias[e] : 0);
            const double b = (double)o->pre[other] + (bias ? (double)o->b_bias[e] : 0);
            const struct exact x = exactly(o->kind, a, 1);
            const double want[2] = {d_y * b * x.slope, d_y * x.f};
            const double bound[2] = {fabs(d_y * b) * x.slope_bound + 4 * U * fabs(want[0]),
                                     fabs(d_y) * (x.f_bound + U * fabs(x.f)) +
                                         2 * U * fabs(want[1])};
            const float *d[2] = {&got.d_pre[at], &got.d_pre[other]};
            for (int k = 0; k < 2; k++) {
                worst = fmax(worst, in_bounds((double)*d[k], want[k], bound[k]));
                sum[k] += want[k];
                sum_bound[k] += bound[k] + (o->rows + 2) * U * fabs(want[k]);
            }
        }
        if (bias) {
            cr_assert_leq(fabs((double)got.d_a_bias[e] - sum[0]), sum_bound[0]);
            cr_assert_leq(fabs((double)got.d_b_bias[e] - sum[1]), sum_bound[1]);
        } else {
            cr_assert(got.d_a_bias[e] == 0.5f && got.d_b_bias[e] == 0.5f);
        }
    }
    for (int i = 0; i < o->rows; i++)
        cr_assert_eq(got.d_pre[i * o->ld + o->n], GUARD_VALUE);
    cr_expect_leq(worst, 1, "glu kind %d, %dx%d: %.2f x its bound", o->kind, o->rows, o->n, worst);
}

Test(acts_grad, glu) { each_units(spreads, ARRAY_LEN(spreads), 2, compare_glu); }
