/* SPDX-License-Identifier: MIT
 *
 * Gradients of every kind of norm: the reference's against finite differences. Backends against
 * the reference: tests/check/test_op_cases.c. */
#include "tests/support/kernel/norm_rows.h"

struct gradients {
    float *x, *weight, *bias;
};

static struct gradients backward(struct rows_of *o)
{
    float *stats = fenced(NORM_STATS * (size_t)o->rows);
    struct gradients d = {fenced(o->size), fenced((size_t)o->n), fenced((size_t)o->n)};

    memset(d.weight, 0, (size_t)o->n * sizeof(float)); /* gradients are added to them */
    memset(d.bias, 0, (size_t)o->n * sizeof(float));
    backend_ref.ops.norm_grad(&(struct norm_grad){
        MEMBERS(o->, kind, d_y, x, weight, rows, n), .d_x = d.x, .d_weight = d.weight,
        .d_bias = norm_centred(o->kind) ? d.bias : NULL, .stats = stats, .eps = EPS, .threads = 1});
    return d;
}

static double value(void *ctx)
{
    const struct rows_of *o = ctx;
    float *y = fenced(o->size);
    const struct norm f = forward_of(o, y, false);
    double sum = 0;

    backend_ref.ops.norm(&f);
    for (size_t i = 0; i < o->size; i++)
        sum += (double)y[i] * (double)o->d_y[i];
    return sum;
}

Test(norms_grad, reference_is_the_derivative)
{
    static const int some[][2] = {{1, 1}, {1, 7}, {5, 2}, {6, 13}};

    for (enum norm_kind kind = 0; kind < NORM_OP_KINDS; kind++)
        for (size_t s = 0; s < ARRAY_LEN(some); s++) {
            const int rows = some[s][0], n = some[s][1];
            struct rows_of o;
            if (!defined(kind, n))
                continue;
            make(&o, kind, rows, n, 2);
            struct gradients d = backward(&o);
            /* rows n outputs, some 4 in size, are stored once, U relative */
            const struct scalar f = {value, &o, U * 4 * rows * n, 0};
            /* the gradients are rounded once, and cancel a little */
            const double relative = 16 * U, absolute = 2 * f.noise / FINITE_STEP;
            const char *const what = kept_text("kind %d %dx%d", kind, rows, n);
            expect_gradient(&f, what, o.x, d.x, o.size, relative, absolute);
            expect_gradient(&f, what, o.weight, d.weight, kind == NORM_SCALE ? 1 : (size_t)n,
                            relative, absolute);
            if (norm_centred(kind))
                expect_gradient(&f, what, o.bias, d.bias, (size_t)n, relative, absolute);
        }
}

/* A row shorter than eps is multiplied by g / eps and no more. */
Test(norms_grad, a_clamped_row_has_a_constant_gradient)
{
    struct rows_of o;

    make(&o, NORM_SCALE, 1, 7, 0);
    for (int e = 0; e < 7; e++)
        o.x[e] *= 1e-8f;
    struct gradients d = backward(&o);
    for (int e = 0; e < 7; e++) {
        const double want = (double)o.d_y[e] * (double)o.weight[0] / (double)EPS;
        cr_expect_leq(fabs((double)d.x[e] - want), 4 * U * fabs(want));
    }
}
