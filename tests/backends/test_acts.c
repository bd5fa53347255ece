/* SPDX-License-Identifier: MIT
 *
 * Activations and gated units: the reference against the curves in double, from the middle of the
 * curves to their ends; on every backend, after a product they give the same as alone. Backends
 * against the reference: tests/check/test_op_cases.c. Bounds in units of U = 2^-24. */
#include "tests/support/kernel/act_case.h"
#include "tests/support/kernel/by_weights.h"

static const float spreads[] = {1, 1e-3f, 8, 100};

enum { WITH_BIAS = 1, WITH_ADD = 2, IN_PLACE = 4, MODES = 8 };

static struct act act_of(const struct units *o, float *y, int mode)
{
    return (struct act){MEMBERS(o->, kind, rows, n),
                        .y = y,
                        .x = mode & IN_PLACE ? y : o->x,
                        .bias = mode & WITH_BIAS ? o->a_bias : NULL,
                        .add = mode & WITH_ADD ? o->add : NULL,
                        .beta = &o->beta,
                        .threads = 1};
}

/* The reference rounds its result only. */
static void expect_act(const struct units *o, int mode)
{
    float *y = fenced(o->size);
    const struct act f = act_of(o, y, mode);
    double worst = 0;

    memcpy(y, o->x, o->size * sizeof(float));
    backend_ref.ops.act(&f);
    for (size_t i = 0; i < o->size; i++) {
        const double bias = f.bias ? (double)f.bias[i % (size_t)o->n] : 0;
        const double add = f.add ? (double)f.add[i] : 0;
        const struct exact x = exactly(o->kind, (double)o->x[i] + bias, beta_of(o));
        const double bound = U * (fabs(x.f) + fabs(add)) + U * fabs(x.f + add);
        worst = fmax(worst, in_bounds((double)y[i], x.f + add, bound));
    }
    cr_expect_leq(worst, 1, "kind %d, %dx%d, mode %d: %.2f x its bound", o->kind, o->rows, o->n,
                  mode, worst);
    cr_expect(guards_intact(y, o->size));
}

Test(acts, forward) { each_units(spreads, ARRAY_LEN(spreads), MODES, expect_act); }

/* The whole curves, step by step. */
Test(acts, everywhere)
{
    enum { ROWS = 64, N = 1024 };

    for (enum act_kind kind = 0; kind < ACT_KINDS; kind++) {
        struct units o;
        make(&o, kind, ROWS, N, 1);
        for (int i = 0; i < ROWS * N; i++)
            o.x[i] = 16.0f * ((float)i / (ROWS * N / 2) - 1);
        o.x[0] = -1e9f, o.x[1] = 1e9f, o.x[2] = -0.0f, o.x[3] = 0, o.x[4] = NAN;
        expect_act(&o, 0);
    }
}

static struct glu glu_of(const struct units *o, float *y, bool bias)
{
    return (struct glu){MEMBERS(o->, kind, ld, rows, n),
                        .y = y,
                        .a = o->pre,
                        .b = o->pre + o->n + 1,
                        .a_bias = bias ? o->a_bias : NULL,
                        .b_bias = bias ? o->b_bias : NULL,
                        .threads = 1};
}

static void expect_glu(const struct units *o, int bias)
{
    float *y = fenced(o->size);
    const struct glu f = glu_of(o, y, bias);
    double worst = 0;

    backend_ref.ops.glu(&f);
    for (int i = 0; i < o->rows; i++)
        for (int e = 0; e < o->n; e++) {
            const double a = (double)f.a[i * f.ld + e] + (bias ? (double)f.a_bias[e] : 0);
            const double v = (double)f.b[i * f.ld + e] + (bias ? (double)f.b_bias[e] : 0);
            const struct exact x = exactly(o->kind, a, 1);
            const double bound = (x.f_bound + U * fabs(a)) * fabs(v) + 4 * U * fabs(x.f * v);
            worst = fmax(worst, in_bounds((double)y[i * o->n + e], x.f * v, bound));
        }
    cr_expect_leq(worst, 1, "glu kind %d, %dx%d: %.2f x its bound", o->kind, o->rows, o->n, worst);
    cr_expect(guards_intact(y, o->size));
}

Test(acts, glu) { each_units(spreads, ARRAY_LEN(spreads), 2, expect_glu); }

/* After a product each kind is the same function of the product's result. */
TEST_EACH(int *b, acts, after_a_product, every_backend())
{
    static const int shapes[][3] = {{1, 37, 5}, {7, 15, 256}, {33, 65, 20}, {130, 70, 300}};

    for (enum act_kind kind = ACT_SIGMOID; kind < ACT_KINDS; kind++)
        for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
            for (int threads = 1; threads <= 2; threads++) {
                const struct engine g = open_engine(backends[*b]->name, threads);
                const int m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
                struct units o;
                make(&o, kind, m, n, 1);
                float *x = normals((size_t)(m * k), "rows", 0, 1);
                float *w = normals((size_t)(n * k), "weight", 0, 0.2f);
                float *c = fenced(o.size), *y = fenced(o.size), *apart = fenced(o.size);
                struct gemm p = by_weights(&g, m, n, k, x, c);
                p.b = w;
                struct act f = act_of(&o, apart, WITH_BIAS | WITH_ADD);
                f.x = c;
                g.ops.gemm(&p);
                g.ops.act(&f);
                f.y = y;
                engine_gemm_act(&g, &p, &f);
                cr_expect_arr_eq(y, apart, o.size * sizeof(float), "%s: kind %d, %dx%dx%d",
                                 g.backend->name, kind, m, n, k);
                cr_expect(guards_intact(y, o.size) && guards_intact(c, o.size));
            }
}
