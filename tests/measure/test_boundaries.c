/* SPDX-License-Identifier: MIT
 *
 * Rules of statistics at their thresholds: one before, at it, one after, and mirrored where they have two
 * sides. */
#include "harness/measure/verdict.h"
#include "tests/support/compared.h"

static enum verdict mirrored(enum verdict v)
{
    switch (v) {
    case VERDICT_SLOWER:
        return VERDICT_FASTER;
    case VERDICT_FASTER:
        return VERDICT_SLOWER;
    case VERDICT_PROBABLY_SLOWER:
        return VERDICT_PROBABLY_FASTER;
    case VERDICT_PROBABLY_FASTER:
        return VERDICT_PROBABLY_SLOWER;
    default:
        return v;
    }
}

static void expect_verdict(double low, double mid, double high, double doubt, enum verdict want)
{
    const double T = 0.05;
    const enum verdict is = verdict_of((struct interval){low, mid, high}, T, doubt);
    const enum verdict other = verdict_of((struct interval){-high, -mid, -low}, T, doubt);

    cr_expect_eq(is, want, "[%a %a %a], doubt %a: %s", low, mid, high, doubt, verdict_name[is]);
    cr_expect_eq(other, mirrored(want), "mirrored [%a %a %a]: %s", low, mid, high,
                 verdict_name[other]);
}

Test(boundaries, of_a_verdict)
{
    const double t = log1p(0.05), less = nextafter(t, 0), more = nextafter(t, 1), tiny = 1e-300;

    /* the difference against the threshold, of an interval above 0 */
    expect_verdict(tiny, more, 2 * t, 0, VERDICT_SLOWER);
    expect_verdict(tiny, t, 2 * t, 0, VERDICT_UNSHOWN);
    expect_verdict(tiny, less, 2 * t, 0, VERDICT_UNSHOWN);
    /* its near end against 0 */
    expect_verdict(0, 2 * t, 3 * t, 0, VERDICT_UNSHOWN);
    expect_verdict(-tiny, 2 * t, 3 * t, 0, VERDICT_UNSHOWN);
    /* its near end against doubt */
    expect_verdict(more, 2 * t, 3 * t, t, VERDICT_SLOWER);
    expect_verdict(t, 2 * t, 3 * t, t, VERDICT_PROBABLY_SLOWER);
    expect_verdict(less, 2 * t, 3 * t, t, VERDICT_PROBABLY_SLOWER);
    /* the ends of what is the same, alone and widened */
    expect_verdict(-t, 0, less, 0, VERDICT_SAME);
    expect_verdict(-t, 0, t, 0, VERDICT_SAME);
    expect_verdict(-t, 0, more, 0, VERDICT_UNSHOWN);
    expect_verdict(-t / 2, 0, t / 2, t / 2, VERDICT_SAME);
    expect_verdict(-t / 2, 0, t / 2, t / 2 * (1 + 1e-15), VERDICT_UNSHOWN);
    expect_verdict(-t / 4, 0, t / 2, t / 2 * (1 + 1e-15), VERDICT_UNSHOWN);
    expect_verdict(NAN, 0, 0, 0, VERDICT_UNSHOWN);
    expect_verdict(0, 0, INFINITY, 0, VERDICT_UNSHOWN);
}

/* x = 0, 1, ... n - 1. By type 7 the quantile p of it is p (n - 1). */
Test(boundaries, of_percentiles_and_intervals)
{
    double x[P99_SAMPLES + 1];

    for (int i = 0; i <= P99_SAMPLES; i++)
        x[i] = i;
    cr_expect(isnan(stats_p90(x, 63)) && isnan(stats_p99(x, 661)));
    NUMBERS({stats_p90(x, 64), 0.90 * 63, 1e-9}, {stats_p90(x, 65), 0.90 * 64, 1e-9},
            {stats_p99(x, 662), 0.99 * 661, 1e-9}, {stats_p99(x, 663), 0.99 * 662, 1e-9});
    /* Of n coins, none falls on heads with 2^-n, one at most with (n + 1) 2^-n, two at most with
     * (1 + n + n (n - 1) / 2) 2^-n: 2.5 % is reached at n = 6, 9 (1.95 %) and 12 (1.93 %). */
    static const struct {
        int n, outside; /* values beyond each end; -1 = no interval */
    } want[] = {{5, -1}, {6, 0}, {7, 0}, {8, 0}, {9, 1}, {10, 1}, {11, 1}, {12, 2}, {13, 2}};
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        const int n = want[i].n, k = want[i].outside;
        const struct interval is = stats_median_interval(x, n);
        cr_expect_eq(is.mid, (n - 1) / 2.0);
        cr_expect(k < 0 ? isnan(is.low) && isnan(is.high) : is.low == k && is.high == n - 1 - k,
                  "%d: %g to %g", n, is.low, is.high);
    }
    cr_expect(isnan(stats_range(x, 2).low) && stats_range(x, 3).high == 2);
    cr_expect(isnan(stats_stddev(x, 1)) && stats_stddev(x, 2) > 0);
}

/* At least half, and six, remain. */
Test(boundaries, of_what_may_be_left_out)
{
    cr_expect(stats_may_leave_out(6, 0) && !stats_may_leave_out(5, 0));
    cr_expect(stats_may_leave_out(12, 6) && !stats_may_leave_out(12, 7));
    cr_expect(stats_may_leave_out(13, 6) && !stats_may_leave_out(13, 7));
    cr_expect(stats_may_leave_out(100, 50) && !stats_may_leave_out(100, 51));
    cr_expect(stats_may_leave_out(7, 1) && !stats_may_leave_out(7, 2));
}
