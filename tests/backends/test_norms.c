/* SPDX-License-Identifier: MIT
 *
 * Every kind of norm: the reference against the papers' equations, and the parameters of each kind.
 * Backends against the reference: tests/check/test_op_cases.c. */
#include "tests/support/kernel/norm_rows.h"
#include "variants/parts/norm.h"

/* ---- forward ------------------------------------------------------------------------------ */

Test(norms, reference_is_the_equation)
{
    for (enum norm_kind kind = 0; kind < NORM_OP_KINDS; kind++)
        for (size_t s = 0; s < ARRAY_LEN(sizes); s++)
            for (int add = 0; add < 2; add++) {
                struct rows_of o;
                if (!defined(kind, sizes[s][1]))
                    continue;
                make(&o, kind, sizes[s][0], sizes[s][1], 3);
                float *y = fenced(o.size);
                const struct norm f = forward_of(&o, y, add);
                backend_ref.ops.norm(&f);
                for (int i = 0; i < o.rows; i++) {
                    const struct moments m = moments_of(&f, i);
                    for (int e = 0; e < o.n; e++) {
                        const double want =
                            (norm_term(&f, i, e) - m.mean) / m.root * norm_weight(&f, i, e) +
                            (f.bias ? (double)f.bias[e] : 0);
                        /* one rounding; the roundings to double are far below the second term */
                        const double bound = U * fabs(want) + 1e-12;
                        cr_assert_leq(fabs((double)y[i * o.n + e] - want), bound, "kind %d, %dx%d",
                                      kind, o.rows, o.n);
                    }
                }
                cr_expect(guards_intact(y, o.size));
            }
}

/* A NaN stays in its row and affects all of it. */
Test(norms, a_nan_takes_its_row)
{
    enum { ROWS = 5, N = 37 };

    for (enum norm_kind kind = 0; kind < NORM_OP_KINDS; kind++) {
        struct rows_of o;
        make(&o, kind, ROWS, N, 0);
        float *y = fenced(o.size);
        const struct norm f = forward_of(&o, y, false);
        o.x[3 * N + 5] = NAN;
        backend_ref.ops.norm(&f);
        for (int i = 0; i < ROWS; i++)
            for (int e = 0; e < N; e++)
                cr_assert_eq(isnan(y[i * N + e]) != 0, i == 3, "kind %d, row %d", kind, i);
    }
}

/* ---- as a part of a model ----------------------------------------------------------------- */

Test(norms, parameters_by_kind)
{
    static const char *const names[NORM_KIND_COUNT][5] = {
        [NORM_LAYER] = {"layers.0.ln1.weight", "layers.0.ln1.bias"},
        [NORM_RMS] = {"layers.0.ln1.weight"},
        [NORM_SCALE] = {"layers.0.ln1.g"},
        [NORM_UNBIASED] = {"layers.0.ln1.weight", "layers.0.ln1.bias"},
        [NORM_POWER] = {"layers.0.ln1.weight", "layers.0.ln1.bias", "layers.0.ln1.phi",
                        "layers.0.ln1.nu"},
    };

    for (enum norm_kind kind = 0; kind < NORM_KIND_COUNT; kind++) {
        struct config c = config_default(variants[0], 12, 3, 4, 17, 1, 9);
        struct params p = {0};
        int n = 0;
        c.norm_kind = kind;
        norm_params(&c, "layers.0.", "ln1", &p);
        while (names[kind][n])
            n++;
        cr_assert_eq(p.n, n);
        for (int i = 0; i < p.n; i++) {
            cr_expect_str_eq(p.v[i].name, names[kind][i]);
            cr_expect(p.v[i].rank == 1 && p.v[i].n == (kind == NORM_SCALE ? 1u : 12u));
            cr_expect_eq(p.v[i].buffer, i > 1);
        }
        params_free(&p);
    }
}
