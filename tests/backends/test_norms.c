/* SPDX-License-Identifier: MIT
 *
 * Every kind of norm: the reference against the papers' equations, the operations that each backend
 * ends up with against the reference's, on awkward sizes with offsets and additions; what the
 * kinds' parameters are. Bounds in units of U = 2^-24. */
#include "tests/support/norm_rows.h"
#include "variants/parts/norm.h"

/* ---- forward ------------------------------------------------------------------------------ */

Test(norms, reference_is_the_equation)
{
    for (enum norm_kind kind = 0; kind < NORM_KIND_COUNT; kind++)
        for (size_t s = 0; s < ARRAY_LEN(sizes); s++)
            for (int add = 0; add < 2; add++) {
                struct rows_of o;
                if (!defined(kind, sizes[s][1]))
                    continue;
                make(&o, kind, sizes[s][0], sizes[s][1], 3);
                float *y = guarded(o.size);
                const struct norm f = forward_of(&o, y, add);
                backend_ref.ops.norm(&f);
                for (int i = 0; i < o.rows; i++) {
                    const struct moments m = moments_of(&f, i);
                    for (int e = 0; e < o.n; e++) {
                        const double want = (term(&f, i, e) - m.mean) / m.root * weight_of(&f, e) +
                                            (f.bias ? (double)f.bias[e] : 0);
                        /* one rounding; the doubles' own are far below the second term */
                        const double bound = U * fabs(want) + 1e-12;
                        cr_assert_leq(fabs((double)y[i * o.n + e] - want), bound, "kind %d, %dx%d",
                                      kind, o.rows, o.n);
                    }
                }
                cr_expect(guards_intact(y, o.size));
                release(y), drop(&o);
            }
}

/* Centred: a deviation is off by the rounding of x + add, twice, its own and the mean's, and by the
 * sums: dd = U (2 T + (n+4) D), T the largest |x + add|, D the largest deviation. The root's
 * relative error is 2 dd/root, (n+3)/2 U from its sum and 4 U from the rest. Otherwise nothing
 * cancels: 1 U for x + add, as much and (n+3)/2 for the root, 6 for root, division, products. */
static double forward_bound(const struct norm *o, const struct moments *m, double want, int e)
{
    if (!centred(o->kind))
        return U * (o->n / 2.0 + 10) * fabs(want);
    const double dd = U * (2 * m->largest + (o->n + 4) * m->deviation);
    const double root = 2 * dd / m->root + U * ((o->n + 3) / 2.0 + 4);
    return fabs(weight_of(o, e)) / m->root * (dd + m->deviation * (root + 3 * U)) +
           2 * U * (fabs(want) + fabs((double)o->bias[e]));
}

static void compare_forward(const struct engine *g, const struct rows_of *o, bool add,
                            bool in_place)
{
    float *got = guarded(o->size), *want = guarded(o->size);
    struct norm f = forward_of(o, want, add);
    double worst = 0;

    backend_ref.ops.norm(&f);
    f.y = got;
    f.threads = g->threads;
    memcpy(got, o->x, o->size * sizeof(float));
    f.x = in_place ? got : o->x;
    g->ops.norm(&f);
    f.x = o->x;
    for (int i = 0; i < o->rows; i++) {
        const struct moments m = moments_of(&f, i);
        for (int e = 0; e < o->n; e++) {
            const int at = i * o->n + e;
            const double bound = forward_bound(&f, &m, (double)want[at], e);
            worst = fmax(worst, in_bounds((double)got[at], (double)want[at], bound));
        }
    }
    cr_expect_leq(worst, 1, "%s: kind %d, %dx%d, add %d, in place %d: %.2f x its bound",
                  g->backend->name, o->kind, o->rows, o->n, add, in_place, worst);
    cr_expect(guards_intact(got, o->size));
    release(got), release(want);
}

ParameterizedTestParameters(norms, forward) { return every_backend(); }
ParameterizedTest(int *b, norms, forward)
{
    static const float means[] = {0, 30, 1e4f};

    for (int threads = 1; threads <= 2; threads++) {
        const struct engine g = open_engine(backends[*b]->name, threads);
        for (enum norm_kind kind = 0; kind < NORM_KIND_COUNT; kind++)
            for (size_t s = 0; s < ARRAY_LEN(sizes); s++)
                for (size_t m = 0; m < ARRAY_LEN(means); m++)
                    for (int mode = 0; mode < 4 && defined(kind, sizes[s][1]); mode++) {
                        struct rows_of o;
                        make(&o, kind, sizes[s][0], sizes[s][1], means[m]);
                        compare_forward(&g, &o, mode & 1, mode & 2);
                        drop(&o);
                    }
    }
}

/* Rows that a norm could divide by nothing: equal elements, all zero, shorter than eps; and a NaN,
 * which stays in its row and takes all of it. */
ParameterizedTestParameters(norms, hostile_rows) { return every_backend(); }
ParameterizedTest(int *b, norms, hostile_rows)
{
    enum { ROWS = 5, N = 37 };
    const struct engine g = open_engine(backends[*b]->name, 1);

    for (enum norm_kind kind = 0; kind < NORM_KIND_COUNT; kind++) {
        struct rows_of o;
        make(&o, kind, ROWS, N, 0);
        float *got = guarded(o.size), *want = guarded(o.size);
        for (int e = 0; e < N; e++) {
            o.x[e] = 0.7f;
            o.x[N + e] = 0;
            o.x[2 * N + e] *= 1e-8f;
        }
        o.x[3 * N + 5] = NAN;
        struct norm f = forward_of(&o, want, false);
        backend_ref.ops.norm(&f);
        f.y = got;
        g.ops.norm(&f);
        for (int i = 0; i < ROWS; i++)
            for (int e = 0; e < N; e++) {
                const int at = i * N + e;
                const struct moments m = moments_of(&f, i);
                const double bound = forward_bound(&f, &m, (double)want[at], e);
                cr_assert_leq(in_bounds((double)got[at], (double)want[at], bound), 1,
                              "%s: kind %d, row %d: %g, not %g", g.backend->name, kind, i,
                              (double)got[at], (double)want[at]);
                cr_assert(i != 3 || isnan(got[at]));
            }
        release(got), release(want), drop(&o);
    }
}

/* ---- as a part of a model ----------------------------------------------------------------- */

Test(norms, parameters_by_kind)
{
    static const char *const names[NORM_KIND_COUNT][2] = {
        {"layers.0.ln1.weight", "layers.0.ln1.bias"},
        {"layers.0.ln1.weight"},
        {"layers.0.ln1.g"},
        {"layers.0.ln1.weight", "layers.0.ln1.bias"},
    };

    for (enum norm_kind kind = 0; kind < NORM_KIND_COUNT; kind++) {
        struct config c = config_default(variants[0], 12, 3, 4, 17, 1, 9);
        struct params p = {0};
        c.norm_kind = kind;
        norm_params(&c, "layers.0.", "ln1", &p);
        cr_expect_eq(p.n, names[kind][1] ? 2 : 1);
        for (int i = 0; i < p.n; i++) {
            cr_expect_str_eq(p.v[i].name, names[kind][i]);
            cr_expect(p.v[i].rank == 1 && p.v[i].n == (kind == NORM_SCALE ? 1u : 12u));
        }
        params_free(&p);
    }
}
