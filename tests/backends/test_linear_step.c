/* SPDX-License-Identifier: MIT
 *
 * The reference's step of a few rows of attention without a softmax against its equations in
 * double; in place, as a state may be. Backends against it: tests/check/test_op_cases.c. */
#include "harness/check/guarded.h"
#include "variants/backends/backend.h"

#include <criterion/criterion.h>
#include <math.h>

/* Both sums of a key are exact but for their rounding. */
static double state_error(const struct linear_step *p, const float *s0, const float *z0)
{
    double worst = 0;

    for (int x = 0; x < p->m; x++) {
        const double k = (double)p->k[x], sum = (double)z0[x] + k;
        worst = fmax(worst, in_bounds((double)p->z[x], sum, 2 * U * sum));
        for (int e = 0; e < p->d; e++) {
            const double was = (double)s0[x * p->d + e], more = k * (double)p->v[e];
            worst = fmax(worst, in_bounds((double)p->s[x * p->d + e], was + more,
                                          2 * U * (fabs(was) + fabs(more))));
        }
    }
    return worst;
}

/* Of the state before the step: numerator and divisor are sums of m products. */
static double output_error(const struct linear_step *p, int t, int e)
{
    const float *q = p->q + (ptrdiff_t)t * p->m;
    double num = 0, size = 0, den = (double)p->eps;

    for (int x = 0; x < p->m; x++) {
        const double term = (double)q[x] * (double)p->s[x * p->d + e];
        num += term, size += fabs(term), den += (double)q[x] * (double)p->z[x];
    }
    const double o = num / den;
    return in_bounds((double)p->o[t * p->d + e], o, (p->m + 3) * U * (size / den + 2 * fabs(o)));
}

static void expect_step(int queries, int m, int d)
{
    const size_t n = (size_t)(m * d), rows = (size_t)queries;
    float *s = normal(n, "s", 0, 3), *s0 = normal(n, "s", 0, 3);
    float *z = positive((size_t)m, "z"), *z0 = positive((size_t)m, "z");
    float *k = positive((size_t)m, "k"), *v = normal((size_t)d, "v", 0, 1);
    float *q = positive(rows * (size_t)m, "q"), *o = guarded(rows * (size_t)d);
    float *den = guarded(rows);
    const struct linear_step p = {.s = s,
                                  .z = z,
                                  .s0 = s,
                                  .z0 = z,
                                  .k = k,
                                  .v = v,
                                  .q = queries ? q : NULL,
                                  .o = o,
                                  .den = den,
                                  .eps = 0.5f,
                                  .queries = queries,
                                  .m = m,
                                  .d = d};

    backend_ref.ops.linear_step(&p);
    double worst = state_error(&p, s0, z0);
    for (int i = 0; i < queries * d; i++)
        worst = fmax(worst, output_error(&p, i / d, i % d));
    cr_expect_leq(worst, 1, "%d queries, m %d, d %d: %.2f x its bound", queries, m, d, worst);
    cr_expect(guards_intact(s, n) && guards_intact(z, (size_t)m));
    cr_expect(guards_intact(o, rows * (size_t)d) && guards_intact(den, rows));
    release(s), release(s0), release(z), release(z0), release(k), release(v), release(q);
    release(o), release(den);
}

Test(linear_step, is_its_equations)
{
    static const int widths[] = {1, 7, 8, 16, 17, 31, 48, 64, 65, 151};

    for (int queries = 0; queries <= 3; queries++)
        for (size_t i = 0; i < ARRAY_LEN(widths); i++)
            expect_step(queries, widths[ARRAY_LEN(widths) - 1 - i], widths[i]);
}
