/* SPDX-License-Identifier: MIT
 *
 * The model's norms that are more than an operation of the backend, against their equations in
 * double: AdaNorm, whose gain is a constant in backward; PowerNorm with its statistics. */
#include "tests/support/every_backend.h"
#include "tests/support/kernel/fenced.h"
#include "tests/support/open_engine.h"
#include "tests/support/set_choice.h"
#include "variants/parts/norm.h"

enum { ROWS = 37, D = 30, N = ROWS * D };

struct normed {
    struct config c;
    struct params p;
    float *x, *d_y, *y, *d_x, *stats;
    float weights[8 * D], grads[8 * D];
};

static void open_norm(struct normed *t, enum norm_kind kind)
{
    *t = (struct normed){.c = config_default(variants[0], D, 3, 10, 17, 1, 9)};
    t->c.norm_kind = kind;
    config_numbers_reset(&t->c);
    norm_params(&t->c, "", "norm", &t->p);
    for (int i = 0; i < t->p.n; i++) {
        struct param *const w = &t->p.v[i];
        w->data = t->weights + (ptrdiff_t)i * D;
        w->grad = t->grads + (ptrdiff_t)i * D;
        for (int e = 0; e < D; e++)
            w->data[e] = 0.5f + (float)rng_uniform(SEED, rng_stream(w->name), (uint64_t)e);
    }
    t->x = normals(N, "x", 0.5f, 2), t->d_y = normals(N, "d_y", 0, 1);
    t->y = fenced(N), t->d_x = fenced(N), t->stats = fenced(NORM_STATS * ROWS);
    kept_copy(t, sizeof(*t));
}

/* Results pass some thirty roundings of terms of their own size. */
static void expect_close(double got, double want, double size, const char *what)
{
    cr_expect_leq(fabs(got - want), 64 * U * size, "%s: %g, not %g", what, got, want);
}

/* ---- AdaNorm ------------------------------------------------------------------------------ */

/* One row of the equations in double. */
struct row {
    double xhat[D], y[D], d_x[D], size;
};

static struct row ada_row(const struct normed *t, int i, bool unbiased, double c, double k)
{
    const double eps = (double)t->c.ln_eps;
    const float *const x = t->x + (ptrdiff_t)i * D, *const d_y = t->d_y + (ptrdiff_t)i * D;
    double mean = 0, squares = 0, mean_t = 0, tx = 0;
    struct row r;

    for (int e = 0; e < D; e++)
        mean += (double)x[e] / D;
    for (int e = 0; e < D; e++)
        squares += ((double)x[e] - mean) * ((double)x[e] - mean);
    const double root = unbiased ? sqrt(squares / (D - 1)) + eps : sqrt(squares / D + eps);
    /* d root / d x = pull xhat */
    const double pull = unbiased ? root / sqrt(squares / (D - 1)) / (D - 1) : 1.0 / D;
    for (int e = 0; e < D; e++) {
        r.xhat[e] = ((double)x[e] - mean) / root;
        const double gain = c * (1 - k * r.xhat[e]), g = gain * (double)d_y[e];
        r.y[e] = gain * r.xhat[e];
        mean_t += g / D;
        tx += g * r.xhat[e];
    }
    for (int e = 0; e < D; e++) {
        const double g = c * (1 - k * r.xhat[e]) * (double)d_y[e];
        r.d_x[e] = (g - mean_t - pull * r.xhat[e] * tx) / root;
    }
    r.size = 8 * c;
    return r;
}

TEST_EACH(int *at, norm, ada_is_its_equation, every_backend())
{
    static const char *const std[] = {"biased", "unbiased"};

    for (int form = 0; form < 2; form++) {
        struct normed t;
        const struct engine g = open_engine(backends[*at]->name, 1);
        open_norm(&t, NORM_ADA);
        cr_expect_eq(t.p.n, 0);
        set_number(&t.c, "ada_c", 1.5);
        set_choice(&t.c, "ada_std", std[form]);
        norm_apply(&g, &t.c, t.p.v, t.y, t.x, NULL, ROWS);
        norm_backward(&g, &t.c, t.p.v, t.d_x, t.d_y, t.x, t.stats, ROWS, ROWS);
        for (int i = 0; i < ROWS; i++) {
            const struct row r = ada_row(&t, i, form, 1.5, (double)0.1f);
            for (int e = 0; e < D; e++) {
                expect_close((double)t.y[i * D + e], r.y[e], r.size, "y");
                expect_close((double)t.d_x[i * D + e], r.d_x[e], r.size, "d_x");
            }
        }
        cr_expect(guards_intact(t.y, N) && guards_intact(t.d_x, N));
    }
}

/* ---- PowerNorm ---------------------------------------------------------------------------- */

enum { WEIGHT, BIAS, PHI, NU };

static double at_of(const struct normed *t, int which, int e)
{
    return (double)t->p.v[which].data[e];
}

/* What the group of channel e divides row i by, or 1. */
static double group_root(const struct normed *t, int groups, int i, int e)
{
    const int n = groups ? D / groups : D, first = e / n * n;
    double squares = 0;

    for (int k = first; k < first + n; k++)
        squares += (double)t->x[i * D + k] * (double)t->x[i * D + k];
    return groups ? sqrt(squares / n + (double)t->c.ln_eps) : 1;
}

static double u_of(const struct normed *t, int groups, int i, int e)
{
    return (double)t->x[i * D + e] / group_root(t, groups, i, e);
}

/* The equations of one channel: d_u, and the sums over rows. */
struct channel {
    double d_u[ROWS], weight, bias, phi, nu;
};

static struct channel channel_of(const struct normed *t, int groups, bool code, int e)
{
    const double eps = (double)t->c.ln_eps, alpha = (double)0.9f, rest = 1 - alpha;
    const double root = sqrt(at_of(t, PHI, e) + eps), nu = at_of(t, NU, e);
    double q = 0, zz = 0, gz = 0, tz = 0;
    struct channel k = {.weight = 0};

    for (int i = 0; i < ROWS; i++)
        q += u_of(t, groups, i, e) * u_of(t, groups, i, e) / ROWS;
    for (int i = 0; i < ROWS; i++) {
        const double z = u_of(t, groups, i, e) / root, d_y = (double)t->d_y[i * D + e];
        const double g = d_y * at_of(t, WEIGHT, e), v = g - rest * nu * z;
        k.weight += d_y * z;
        k.bias += d_y;
        zz += z * z / ROWS, gz += g * z / ROWS, tz += v * z / ROWS;
        k.d_u[i] = code ? v / sqrt(q + eps) : (g - nu * z) / root;
    }
    k.phi = alpha * at_of(t, PHI, e) + rest * q;
    k.nu = code ? nu + tz : nu * (1 - rest * zz) + rest * gz;
    return k;
}

/* From d_u to d_x: the derivative of x / root of its group. */
static double through_group(const struct normed *t, int groups, const struct channel *all, int i,
                            int e)
{
    const int n = groups ? D / groups : D, first = e / n * n;
    const double root = group_root(t, groups, i, e);
    double dot = 0;

    if (!groups)
        return all[e].d_u[i];
    for (int k = first; k < first + n; k++)
        dot += all[k].d_u[i] * u_of(t, groups, i, k);
    return (all[e].d_u[i] - u_of(t, groups, i, e) * dot / n) / root;
}

static void expect_power(struct normed *t, int groups, bool code)
{
    static struct channel all[D];

    for (int e = 0; e < D; e++)
        all[e] = channel_of(t, groups, code, e);
    for (int e = 0; e < D; e++) {
        const struct channel *const k = &all[e];
        const double root = sqrt(at_of(t, PHI, e) + (double)t->c.ln_eps);
        const struct param *const p = t->p.v;
        expect_close((double)p[WEIGHT].grad[e], k->weight, 4 * ROWS, "d_weight");
        expect_close((double)p[BIAS].grad[e], k->bias, 4 * ROWS, "d_bias");
        expect_close((double)(p[PHI].data[e] + p[PHI].grad[e]), k->phi, 16, "phi");
        expect_close((double)(p[NU].data[e] + p[NU].grad[e]), k->nu, 16, "nu");
        for (int i = 0; i < ROWS; i++) {
            const double y = at_of(t, WEIGHT, e) * u_of(t, groups, i, e) / root + at_of(t, BIAS, e);
            expect_close((double)t->y[i * D + e], y, 16, "y");
            expect_close((double)t->d_x[i * D + e], through_group(t, groups, all, i, e), 32, "d_x");
        }
    }
}

Test(norm, power_is_its_equation)
{
    static const int of_groups[] = {0, 1, 3, D};

    for (size_t k = 0; k < ARRAY_LEN(of_groups); k++)
        for (int code = 0; code < 2; code++) {
            struct normed t;
            const struct engine g = open_engine("ref", 1);
            open_norm(&t, NORM_POWER);
            set_number(&t.c, "pn_group", of_groups[k]);
            set_choice(&t.c, "pn_backward", code ? "code" : "paper");
            norm_apply(&g, &t.c, t.p.v, t.y, t.x, NULL, ROWS);
            memcpy(t.d_x, t.d_y, N * sizeof(float)); /* in place */
            norm_backward(&g, &t.c, t.p.v, t.d_x, t.d_x, t.x, t.stats, ROWS, ROWS);
            expect_power(&t, of_groups[k], code);
            cr_expect(guards_intact(t.y, N) && guards_intact(t.d_x, N));
            cr_expect(guards_intact(t.stats, NORM_STATS * ROWS));
        }
}

/* The rows of two calls are those of one batch. */
Test(norm, power_takes_its_statistics_over_all_calls)
{
    enum { FIRST = 13 };
    struct normed one, two;

    const struct engine g = open_engine("ref", 1);
    open_norm(&one, NORM_POWER);
    open_norm(&two, NORM_POWER);
    norm_backward(&g, &one.c, one.p.v, one.d_x, one.d_y, one.x, one.stats, ROWS, ROWS);
    norm_backward(&g, &two.c, two.p.v, two.d_x, two.d_y, two.x, two.stats, FIRST, ROWS);
    norm_backward(&g, &two.c, two.p.v, two.d_x + FIRST * D, two.d_y + FIRST * D, two.x + FIRST * D,
                  two.stats, ROWS - FIRST, ROWS);
    for (int i = 0; i < N; i++)
        cr_expect_eq(one.d_x[i], two.d_x[i]);
    for (int i = 0; i < one.p.n; i++)
        for (int e = 0; e < D; e++)
            expect_close((double)two.p.v[i].grad[e], (double)one.p.v[i].grad[e], 4 * ROWS,
                         one.p.v[i].name);
}

/* What is added counts as part of the row, and results may replace it. */
Test(norm, power_adds_first)
{
    for (int groups = 0; groups <= 3; groups += 3) {
        struct normed t;
        const struct engine g = open_engine("ref", 1);
        open_norm(&t, NORM_POWER);
        set_number(&t.c, "pn_group", groups);
        float *const sum = fenced(N);
        for (int i = 0; i < N; i++)
            sum[i] = t.x[i] + t.d_y[i];
        norm_apply(&g, &t.c, t.p.v, t.y, sum, NULL, ROWS);
        norm_apply(&g, &t.c, t.p.v, t.d_y, t.x, t.d_y, ROWS);
        for (int i = 0; i < N; i++)
            expect_close((double)t.d_y[i], (double)t.y[i], 16, "sum");
    }
}
