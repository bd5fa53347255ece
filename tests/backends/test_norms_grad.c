/* SPDX-License-Identifier: MIT
 *
 * Gradients of every kind of norm: the reference's against finite differences, those that each
 * backend ends up with against the reference's. Bounds in units of U = 2^-24. */
#include "tests/support/norm_rows.h"

#include <stdio.h>

struct gradients {
    float *x, *weight, *bias;
};

static struct gradients backward(const struct ops *ops, struct rows_of *o, int threads,
                                 bool in_place)
{
    float *stats = guarded(NORM_STATS * (size_t)o->rows);
    struct gradients d = {guarded(o->size), guarded((size_t)o->n), guarded((size_t)o->n)};

    for (int e = 0; e < o->n; e++)
        d.weight[e] = d.bias[e] = 0.25f; /* they are added to */
    for (int i = 0; i < NORM_STATS * o->rows; i++)
        stats[i] = NAN;
    if (in_place)
        memcpy(d.x, o->d_y, o->size * sizeof(float));
    ops->norm_grad(&(struct norm_grad){.kind = o->kind,
                                       .d_x = d.x,
                                       .d_weight = d.weight,
                                       .d_bias = centred(o->kind) ? d.bias : NULL,
                                       .d_y = in_place ? d.x : o->d_y,
                                       .x = o->x,
                                       .weight = o->weight,
                                       .stats = stats,
                                       .rows = o->rows,
                                       .n = o->n,
                                       .eps = EPS,
                                       .threads = threads});
    for (int e = 0; e < o->n; e++)
        d.weight[e] -= 0.25f, d.bias[e] -= 0.25f;
    cr_expect(guards_intact(stats, NORM_STATS * (size_t)o->rows) && guards_intact(d.x, o->size));
    cr_expect(guards_intact(d.weight, (size_t)o->n) && guards_intact(d.bias, (size_t)o->n));
    release(stats);
    return d;
}

static void drop_gradients(struct gradients *d)
{
    release(d->x), release(d->weight), release(d->bias);
}

static double value(void *ctx)
{
    const struct rows_of *o = ctx;
    float *y = guarded(o->size);
    const struct norm f = forward_of(o, y, false);
    double sum = 0;

    backend_ref.ops.norm(&f);
    for (size_t i = 0; i < o->size; i++)
        sum += (double)y[i] * (double)o->d_y[i];
    release(y);
    return sum;
}

Test(norms_grad, reference_is_the_derivative)
{
    static const int some[][2] = {{1, 1}, {1, 7}, {5, 2}, {6, 13}};

    for (enum norm_kind kind = 0; kind < NORM_KIND_COUNT; kind++)
        for (size_t s = 0; s < ARRAY_LEN(some); s++) {
            const int rows = some[s][0], n = some[s][1];
            struct rows_of o;
            char what[3][64];
            if (!defined(kind, n))
                continue;
            make(&o, kind, rows, n, 2);
            struct gradients d = backward(&backend_ref.ops, &o, 1, false);
            /* rows n outputs, some 4 in size, are stored once, U relative */
            const struct scalar f = {value, &o, U * 4 * rows * n, 0};
            /* the gradients lost a quarter's rounding, and cancel a little */
            const double relative = 16 * U, absolute = 2 * f.noise / FINITE_STEP;
            for (int k = 0; k < 3; k++)
                snprintf(what[k], sizeof(what[k]), "kind %d operand %d %dx%d", kind, k, rows, n);
            expect_gradient(&f, what[0], o.x, d.x, o.size, relative, absolute);
            expect_gradient(&f, what[1], o.weight, d.weight, kind == NORM_SCALE ? 1 : (size_t)n,
                            relative, absolute);
            if (centred(kind))
                expect_gradient(&f, what[2], o.bias, d.bias, (size_t)n, relative, absolute);
            drop_gradients(&d), drop(&o);
        }
}

/* A row shorter than eps is multiplied by g / eps and no more. */
Test(norms_grad, a_clamped_row_has_a_constant_gradient)
{
    struct rows_of o;

    make(&o, NORM_SCALE, 1, 7, 0);
    for (int e = 0; e < 7; e++)
        o.x[e] *= 1e-8f;
    struct gradients d = backward(&backend_ref.ops, &o, 1, false);
    for (int e = 0; e < 7; e++) {
        const double want = (double)o.d_y[e] * (double)o.weight[0] / (double)EPS;
        cr_expect_leq(fabs((double)d.x[e] - want), 4 * U * fabs(want));
    }
    drop_gradients(&d), drop(&o);
}

/* xhat is off by U 2 T / root where a mean is taken off, and by its factors; t, the two sums of n
 * products and the last three steps round 2 n + 40 times. All of it is relative to the sizes of the
 * three terms of d_x. */
struct sizes {
    double xhat, relative, terms;
};

static struct sizes sizes_of(const struct norm *f, const struct rows_of *o, int i)
{
    const struct moments m = moments_of(f, i);
    struct sizes s = {.xhat = m.deviation / m.root};
    double t = 0, sum_t = 0, sum_tx = 0;

    for (int e = 0; e < f->n; e++) {
        const double te = fabs((double)o->d_y[i * f->n + e] * weight_of(f, e));
        t = fmax(t, te);
        sum_t += te;
        sum_tx += te * fabs(term(f, i, e) - m.mean) / m.root;
    }
    const double pull = f->kind == NORM_SCALE      ? 1
                        : f->kind == NORM_UNBIASED ? 1.0 / (f->n - 1)
                                                   : 1.0 / f->n;
    s.relative = U * (2 * f->n + 40 + (centred(f->kind) ? 8 * m.largest / m.root : 0));
    s.terms = (t + sum_t / f->n + s.xhat * sum_tx * pull) / m.root;
    return s;
}

static void compare_backward(const struct engine *g, struct rows_of *o)
{
    struct gradients got = backward(&g->ops, o, g->threads, false);
    struct gradients over = backward(&g->ops, o, 1, true);
    struct gradients want = backward(&backend_ref.ops, o, 1, false);
    const struct norm f = forward_of(o, NULL, false);
    double worst = 0, sum = 0, all = 0;

    for (int i = 0; i < o->rows; i++) {
        const struct sizes s = sizes_of(&f, o, i);
        for (int e = 0; e < o->n; e++) {
            const int at = i * o->n + e;
            worst =
                fmax(worst, in_bounds((double)got.x[at], (double)want.x[at], s.relative * s.terms));
            sum += fabs((double)o->d_y[at]) * s.xhat * (s.relative + U * o->rows);
            all += fabs((double)o->d_y[at]) * U * o->rows;
        }
    }
    cr_expect_leq(worst, 1, "%s: kind %d, %dx%d, d_x: %.2f x its bound", g->backend->name, o->kind,
                  o->rows, o->n, worst);
    for (int e = 0; e < (o->kind == NORM_SCALE ? 1 : o->n); e++) {
        cr_assert_leq(fabs((double)got.weight[e] - (double)want.weight[e]), sum + U,
                      "%s: kind %d, %dx%d, d_weight", g->backend->name, o->kind, o->rows, o->n);
        cr_assert_leq(fabs((double)got.bias[e] - (double)want.bias[e]), all + U);
    }
    /* neither threads nor the place change a bit */
    cr_expect_arr_eq(got.x, over.x, o->size * sizeof(float));
    cr_expect_arr_eq(got.weight, over.weight, (size_t)o->n * sizeof(float));
    cr_expect_arr_eq(got.bias, over.bias, (size_t)o->n * sizeof(float));
    drop_gradients(&got), drop_gradients(&over), drop_gradients(&want);
}

ParameterizedTestParameters(norms_grad, backward) { return every_backend(); }
ParameterizedTest(int *b, norms_grad, backward)
{
    for (int threads = 1; threads <= 3; threads += 2) {
        const struct engine g = open_engine(backends[*b]->name, threads);
        for (enum norm_kind kind = 0; kind < NORM_KIND_COUNT; kind++)
            for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
                struct rows_of o;
                if (!defined(kind, sizes[s][1]))
                    continue;
                make(&o, kind, sizes[s][0], sizes[s][1], 1);
                compare_backward(&g, &o);
                drop(&o);
            }
    }
}
