/* SPDX-License-Identifier: MIT
 *
 * Divergences of two rows of logits by hand, and over tokens. */
#include "harness/learn/score/divergence.h"
#include "tests/support/failure.h"

/* p = (1/2, 1/4, 1/4), q = (1/4, 1/2, 1/4): KL = 1/2 ln 2 - 1/4 ln 2. Logits are p up to a constant. */
Test(divergence, by_hand)
{
    struct divergence d = {0};
    const float p[] = {0, -logf(2), -logf(2), 5, 5 - logf(2), 5 - logf(2)},
                q[] = {7, 7 + logf(2), 7, 5, 5 - logf(2), 5 - logf(2)};

    cr_expect(isnan(divergence_means(&d).kl) && isnan(divergence_means(&d).same_pct));
    cr_assert_eq(divergence_room(&d, 2, &failure), OK);
    divergence_add(&d, p, q, 2, 3, 2);
    const double kl = log(2) / 4;
    cr_expect_float_eq(d.kl[0], kl, 4e-7); /* ln 2 rounded to float, beside 7 */
    cr_expect_float_eq(d.kl[1], 0, 1e-15, "equal rows");
    const struct divergence_means m = divergence_means(&d);
    NUMBERS({m.kl, kl / 2, 2e-7}, {m.same_pct, 50});
    cr_expect_float_eq(m.kl_p99, 0.99 * kl, 4e-7); /* between the two order statistics */
    divergence_free(&d);
}

/* A word without probability adds nothing: 0 ln 0 = 0. One that only q has not is infinitely far. */
Test(divergence, words_without_probability)
{
    struct divergence d = {0};
    const float p[] = {0, 0, -INFINITY}, q[] = {0, 0, 0}, r[] = {0, -INFINITY, 0};

    cr_assert_eq(divergence_room(&d, 2, &failure), OK);
    divergence_add(&d, p, q, 1, 3, 1);
    cr_expect_float_eq(d.kl[0], log(1.5), 1e-12);
    divergence_add(&d, p, r, 1, 3, 1);
    cr_expect(isinf(d.kl[1]));
    divergence_free(&d);
}

/* Tokens come in blocks of any size, and by any number of threads. */
Test(divergence, adds_up)
{
    enum { ROWS = 257, V = 33 };
    static float p[ROWS * V], q[ROWS * V];
    struct divergence one = {0}, many = {0};

    for (int i = 0; i < ROWS * V; i++) {
        p[i] = (float)sin(i);
        q[i] = (float)sin(i + 0.01 * cos(3 * i));
    }
    cr_assert_eq(divergence_room(&one, ROWS, &failure), OK);
    divergence_add(&one, p, q, ROWS, V, 1);
    for (int at = 0; at < ROWS; at += 16) {
        const int n = at + 16 < ROWS ? 16 : ROWS - at;
        cr_assert_eq(divergence_room(&many, (size_t)n, &failure), OK);
        divergence_add(&many, p + at * V, q + at * V, n, V, 3);
    }
    cr_assert_eq(many.n, one.n);
    cr_expect_eq(many.same, one.same);
    for (size_t i = 0; i < one.n; i++)
        cr_expect(one.kl[i] == many.kl[i] && one.kl[i] > 0);
    divergence_free(&one);
    divergence_free(&many);
}
