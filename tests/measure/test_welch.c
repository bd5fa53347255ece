/* SPDX-License-Identifier: MIT
 *
 * Student's t, Welch's interval and Holm's correction against worked values, and how often they
 * err, by simulation from fixed seeds. */
#include "harness/measure/welch.h"
#include "tests/support/compared.h"

#include "tests/support/normal.h"

/* With 1 and 2 degrees of freedom there are closed forms: 1 - 2 atan(t) / pi, 1 - t / sqrt(2 +
 * t^2). The fraction ends at 1e-15 relative; some ten operations and lgamma come on top. */
Test(welch, tails_of_students_t)
{
    const double pi = 3.14159265358979323846;

    for (double t = 0.03125; t < 100; t *= 2) {
        NUMBERS({student_two_sided(t, 1), 1 - 2 * atan(t) / pi, 1e-13},
                {student_two_sided(t, 2), 1 - t / sqrt(2 + t * t), 1e-13},
                {student_two_sided(-t, 2), student_two_sided(t, 2)});
    }
    NUMBERS({student_two_sided(0, 7), 1}, {student_two_sided(INFINITY, 7), 0});
    cr_expect(isnan(student_two_sided(NAN, 3)) && isnan(student_two_sided(1, 0)));
}

/* Printed tables of t at 0.975: three decimals. */
Test(welch, quantiles_of_students_t)
{
    static const double want[][2] = {{1, 12.706}, {2, 4.303},   {3, 3.182},
                                     {4, 2.776},  {6, 2.447},   {10, 2.228},
                                     {30, 2.042}, {120, 1.980}, {1e6, 1.960}};

    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        NUMBERS({student_quantile(0.05, want[i][0]), want[i][1], 0.0005});
    for (double df = 1.5; df < 50; df *= 1.7) /* its own inverse */
        NUMBERS({student_two_sided(student_quantile(0.01, df), df), 0.01, 1e-12});
    cr_expect(isnan(student_quantile(0, 3)) && isnan(student_quantile(0.05, -1)));
}

/* By hand: a = 1 2 3 (mean 2, variance 1), b = 4 6 8 10 (mean 7, variance 20/3). Error
 * sqrt(1/3 + 5/3) = sqrt 2; df = 4 / ((1/9)/2 + (25/9)/3) = 216/53. */
Test(welch, an_example_by_hand)
{
    const double a[] = {1, 2, 3}, b[] = {4, 6, 8, 10};
    const struct welch w = welch(group_stats(a, 3), group_stats(b, 4));

    const double half = student_quantile(0.05, 216.0 / 53) * sqrt(2);
    NUMBERS({w.diff.mid, 5, 1e-14}, {w.df, 216.0 / 53, 1e-13},
            {w.p, student_two_sided(5 / sqrt(2), 216.0 / 53), 1e-14}, {w.diff.low, 5 - half, 1e-12},
            {w.diff.high, 5 + half, 1e-12});
    cr_expect(w.diff.low > 0 && w.p < 0.05, "the interval and p agree");
}

Test(welch, too_few_values_and_none_that_vary)
{
    const double x[] = {2, 2, 2}, y[] = {3, 3};
    const struct welch one = welch(group_stats(x, 1), group_stats(y, 2));
    cr_expect(isnan(one.p) && isnan(one.diff.low) && one.diff.mid == 1);
    const struct welch same = welch(group_stats(x, 3), group_stats(x, 2));
    cr_expect(same.p == 1 && same.diff.low == 0 && same.diff.high == 0);
    const struct welch sure = welch(group_stats(x, 3), group_stats(y, 2));
    cr_expect(sure.p == 0 && sure.diff.low == 1 && sure.diff.high == 1);
}

/* By the binomial's tails at the ends: P(K >= k) at the lower and P(K <= k) at the upper one are
 * 2.5 %, summed term by term; of none and of all there is a closed form. */
Test(welch, shares_by_tails)
{
    for (int n = 1; n <= 12; n++)
        for (int k = 0; k <= n; k++) {
            const struct interval s = share_interval(k, n);
            double above = 0, below = 0;
            for (int i = 0; i <= n; i++) {
                const double ways = exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1));
                above += i >= k ? ways * pow(s.low, i) * pow(1 - s.low, n - i) : 0;
                below += i <= k ? ways * pow(s.high, i) * pow(1 - s.high, n - i) : 0;
            }
            NUMBERS({s.mid, (double)k / n}, {above, k ? 0.025 : 1, 1e-12},
                    {below, k < n ? 0.025 : 1, 1e-12});
        }
    NUMBERS({share_interval(5, 5).low, pow(0.025, 0.2), 1e-12});
}

/* By hand: 1, 2, 3 has mean 2 and a standard error of 1 / sqrt 3; t with 2 degrees is 4.303. */
Test(welch, the_interval_of_a_mean)
{
    const double x[] = {1, 2, 3};
    const struct interval m = mean_interval(group_stats(x, 3));

    NUMBERS({m.mid, 2}, {m.high - 2, 4.303 / sqrt(3), 0.0005}, {2 - m.low, m.high - 2, 1e-14});
    cr_expect(isnan(mean_interval(group_stats(x, 1)).low));
}

/* p = 0.01, 0.04, 0.03, 0.005 in Holm's order: 4 x 0.005, 3 x 0.01, 2 x 0.03, and 0.04, which may
 * not come below the one before it. */
Test(welch, holm_by_hand)
{
    double p[] = {0.01, 0.04, NAN, 0.03, 0.005}, work[5];
    const double want[] = {0.03, 0.06, NAN, 0.06, 0.02};

    holm(p, 5, work);
    for (int i = 0; i < 5; i++)
        NUMBERS({p[i], want[i], 1e-16});
    double large[] = {0.5, 0.9};
    holm(large, 2, work);
    cr_expect(large[0] == 1 && large[1] == 1, "never above one");
}

Test(welch, pooled)
{
    const struct group_stats g[] = {{3, 0, 1}, {1, 5, NAN}, {5, 9, 2}};

    NUMBERS({pooled_sd(g, 3), sqrt((2 * 1 + 4 * 4) / 6.0), 1e-15}, {pooled_sd(g + 1, 1), NAN});
}

/* ---- how often it errs ---------------------------------------------------------------------- */

static struct group_stats draw(uint64_t stream, uint64_t *at, int n, double mean, double sd)
{
    double x[8];

    for (int i = 0; i < n; i++)
        x[i] = mean + sd * normal_at(stream, (*at)++);
    return group_stats(x, n);
}

/* 95 % of 4000 intervals hold the truth; 4 standard errors of that count are 1.4 %. Welch's
 * approximation itself is off by up to 1.5 % at three values a side (more sure than it says). */
Test(welch, intervals_hold_the_truth)
{
    enum { DRAWS = 4000 };
    static const int sizes[][2] = {{3, 3}, {5, 3}, {5, 5}, {8, 4}};
    static const double spread[] = {1, 0.5, 2};

    for (size_t s = 0; s < ARRAY_LEN(sizes); s++)
        for (size_t k = 0; k < ARRAY_LEN(spread); k++) {
            const uint64_t stream = rng_stream("welch.intervals") + 10 * s + k;
            uint64_t at = 0;
            int held = 0;
            for (int i = 0; i < DRAWS; i++) {
                const struct group_stats a = draw(stream, &at, sizes[s][0], 1, 1);
                const struct group_stats b = draw(stream, &at, sizes[s][1], 1.25, spread[k]);
                const struct welch w = welch(a, b);
                held += w.diff.low <= 0.25 && w.diff.high >= 0.25;
            }
            const double share = (double)held / DRAWS;
            cr_expect(share > 0.95 - 0.029 && share < 0.95 + 0.029, "%d against %d, spread %g: %g",
                      sizes[s][0], sizes[s][1], spread[k], share);
        }
}

/* Tables of eight comparisons in which nothing differs: at most 5 % have any finding (and 4
 * standard errors of 2000 tables: 2 %). Uncorrected, a third of them would. */
Test(welch, holm_keeps_tables_of_nothing_quiet)
{
    enum { TABLES = 2000, ROWS = 8 };
    const uint64_t stream = rng_stream("welch.tables");
    uint64_t at = 0;
    int loud = 0, loud_without = 0;

    for (int t = 0; t < TABLES; t++) {
        const struct group_stats base = draw(stream, &at, 5, 0, 1);
        double p[ROWS], work[ROWS], least = 1, least_without = 1;
        for (int i = 0; i < ROWS; i++)
            p[i] = welch(base, draw(stream, &at, 3, 0, 1)).p;
        for (int i = 0; i < ROWS; i++)
            least_without = fmin(least_without, p[i]);
        holm(p, ROWS, work);
        for (int i = 0; i < ROWS; i++)
            least = fmin(least, p[i]);
        loud += least < 0.05;
        loud_without += least_without < 0.05;
    }
    cr_expect_lt(loud, (0.05 + 0.02) * TABLES);
    cr_expect_gt(loud_without, 0.15 * TABLES);
}

/* By scipy 1.17 (k times f.sf((k - 1) c / (1 - c), m - 1, (k - 1) (m - 1)), ttest_rel, t.isf) and statsmodels 0.15 (ols "y ~ C(i) + C(s)":
 * the root of mse_resid; multipletests, "fdr_bh" and "holm"). */
Test(welch, cochran_and_two_way)
{
    static const double a[] = {2.11, 2.14, 2.09, 2.20}, b[] = {2.31, 2.05, 2.60, 2.44},
                        c[] = {1.90, 1.93, 1.88, 1.97};
    static const struct {
        const double *group[3];
        int k, m;
        double p, sd;
    } is[] = {{{a, b, c}, 3, 4, 0.00185649721209881, 0.142087609906314},
              {{a, c}, 2, 4, 0.74706007810466, 0.00707106781186553},
              {{c, a}, 2, 4, 0.74706007810466, 0.00707106781186553},
              {{a, b, c}, 3, 3, 0.000812532202590625, 0.173237152802484}};

    for (size_t i = 0; i < ARRAY_LEN(is); i++) {
        double x[12];
        for (int s = 0; s < is[i].m; s++)
            for (int k = 0; k < is[i].k; k++)
                x[s * is[i].k + k] = is[i].group[k][s];
        cr_expect_float_eq(cochran(x, is[i].k, is[i].m), is[i].p, 1e-12);
        cr_expect_float_eq(two_way_sd(x, is[i].k, is[i].m), is[i].sd, 1e-13);
    }
    cr_expect(isnan(cochran((const double[]){1, 2, 1, 2, 1, 2}, 2, 3)), "nothing varies");
    cr_expect_eq(two_way_sd((const double[]){1, 2, 2, 3, 4, 5}, 2, 3), 0, "seeds alone");
    const struct welch w = difference(0.215, 0.005, 3);
    NUMBERS({w.diff.low, 0.199087768473581, 1e-12}, {w.diff.high, 0.230912231526419, 1e-12},
            {w.p, 2.76834654495868e-05, 1e-16},
            {least_shown(0.01, 6, 7, 0.005), 0.0490276407190267, 1e-12},
            {least_shown(0.01, 40, 1, 0.005), 0.0337177518609673, 1e-12});
}

Test(welch, benjamini_hochberg)
{
    static const double in[] = {0.01, 0.04, NAN, 0.03, 0.005, 0.005, 0.9},
                        q[] = {0.02, 0.048, NAN, 0.045, 0.015, 0.015, 0.9};
    double p[7], work[7];

    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 7; i++)
            p[i] = in[turn ? 6 - i : i];
        benjamini_hochberg(p, 7, work);
        for (int i = 0; i < 7; i++) {
            const double is = p[turn ? 6 - i : i];
            cr_expect(fabs(is - q[i]) < 1e-15 || (isnan(is) && isnan(q[i])), "%d: %g", i, is);
        }
    }
    p[0] = NAN;
    benjamini_hochberg(p, 1, work);
    cr_expect(isnan(p[0]));
    p[0] = 0.04;
    benjamini_hochberg(p, 1, work);
    cr_expect_eq(p[0], 0.04);
}
