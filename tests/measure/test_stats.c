/* SPDX-License-Identifier: MIT
 *
 * Statistics against known answers, and the bootstrap against simulated noise. The simulations draw
 * from fixed seeds, so they give the same counts on every machine. */
#include "harness/measure/launches.h"
#include "tests/support/compared.h"
#include "tests/support/sanitized.h"

#include "variants/base/rng.h"
#include <criterion/logging.h>

/* Some roundings of numbers of about this size. */
#define NEAR(want) (1e-12 * fmax(1, fabs((double)(want))))

/* ---- order statistics ---------------------------------------------------------------------- */

Test(stats, sorts_nan_last)
{
    double x[] = {3, NAN, -1, INFINITY, 2, NAN, -INFINITY};

    sort_numbers(x, 7);
    cr_expect(x[0] == -INFINITY && x[1] == -1 && x[2] == 2 && x[3] == 3 && x[4] == INFINITY);
    cr_expect(isnan(x[5]) && isnan(x[6]));
}

Test(stats, median)
{
    const double x[] = {1, 2, 4, 7};

    NUMBERS({stats_median(x, 4), 3}, {stats_median(x, 3), 2}, {stats_median(x, 1), 1});
    cr_expect(isnan(stats_median(x, 0)));
}

/* R: quantile(1:10, c(0, .1, .25, .5, .9, 1)) and quantile(c(1, 2, 4, 8), 1/3). */
Test(stats, quantile_is_type_7)
{
    const double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, y[] = {1, 2, 4, 8};
    const double p[] = {0, 0.1, 0.25, 0.5, 0.9, 1}, want[] = {1, 1.9, 3.25, 5.5, 9.1, 10};

    for (size_t i = 0; i < ARRAY_LEN(p); i++)
        NUMBERS({stats_quantile(x, 10, p[i]), want[i], NEAR(want[i])});
    NUMBERS({stats_quantile(y, 4, 1.0 / 3), 2, NEAR(2)}, {stats_quantile(y, 1, 0.9), 1, NEAR(1)});
}

Test(stats, high_percentiles_need_samples)
{
    double x[P99_SAMPLES];

    for (int i = 0; i < P99_SAMPLES; i++)
        x[i] = i;
    NUMBERS({stats_p90(x, 63), NAN}, {stats_p90(x, 64), 56.7, NEAR(56.7)}, {stats_p99(x, 661), NAN},
            {stats_p99(x, 662), 654.39, NEAR(654.39)});
}

Test(stats, spread)
{
    const double x[] = {2, 4, 4, 4, 5, 5, 7, 9}; /* squares around the mean 5 add up to 32 */
    const double y[] = {1, 1, 2, 2, 4, 6, 9};    /* distances from 2: 0 0 1 1 2 4 7 */
    double work[8];

    NUMBERS({stats_mean(x, 8), 5}, {stats_stddev(x, 8), sqrt(32.0 / 7), NEAR(2)},
            {stats_mean(x, 0), NAN}, {stats_stddev(x, 1), NAN});
    NUMBERS({stats_mad(y, 7, work), 1}, {stats_mad(y, 1, work), 0}); /* one, too */
}

Test(stats, drift)
{
    const double even[] = {10, 12, 10, 11, 11, 13}; /* 10 -> 11 */
    const double odd[] = {2, 1000, 1};              /* the middle one belongs to neither half */
    double work[6];

    NUMBERS({stats_drift_pct(even, 6, work), 10, NEAR(10)},
            {stats_drift_pct(odd, 3, work), -50, NEAR(50)}, {stats_drift_pct(even, 1, work), NAN});
}

/* A NaN comes from a broken clock: it must not hide in a plausible median. */
Test(stats, a_nan_spoils_every_number)
{
    double x[] = {1, NAN, 2, 3, 4}, work[5];

    cr_expect(isnan(stats_drift_pct(x, 5, work)));
    sort_numbers(x, 5);
    NUMBERS({stats_median(x, 5), NAN}, {stats_quantile(x, 5, 0), NAN}, {stats_mean(x, 5), NAN},
            {stats_stddev(x, 5), NAN}, {stats_mad(x, 5, work), NAN});
    const struct interval ci = stats_median_interval(x, 5);
    cr_expect(isnan(ci.low) && isnan(ci.mid) && isnan(ci.high));
}

/* ---- the interval of a median -------------------------------------------------------------- */

Test(interval, of_few_or_equal_values)
{
    const double x[] = {1, 2, 5, 6, 8, 9}, same[] = {7, 7, 7, 7, 7, 7};

    for (int n = 0; n < 6; n++) {
        const struct interval none = stats_median_interval(x, n), range = stats_range(x, n);
        cr_expect(isnan(none.low) && isnan(none.high) && isnan(none.mid) == (n == 0), "n=%d", n);
        cr_expect(n < 3 ? isnan(range.low) : range.low == 1 && range.high == x[n - 1], "n=%d", n);
    }
    struct interval ci = stats_median_interval(x, 6);
    cr_expect(ci.low == 1 && ci.mid == 5.5 && ci.high == 9);
    ci = stats_median_interval(same, 6);
    cr_expect(ci.low == 7 && ci.mid == 7 && ci.high == 7);
}

/* Places of n = 6, 9, ... in tables of the sign test at 5 % (two-sided), counted from 1. */
Test(interval, has_the_places_of_the_sign_test)
{
    enum { MOST = 2000 };
    static const struct {
        int n, place;
    } known[] = {{6, 1}, {8, 1}, {9, 2}, {11, 2}, {12, 3}, {15, 4}, {20, 6}, {50, 18}, {100, 40}};
    static double x[MOST];

    for (int i = 0; i < MOST; i++)
        x[i] = i + 1;
    for (size_t k = 0; k < ARRAY_LEN(known); k++) {
        const struct interval ci = stats_median_interval(x, known[k].n);
        cr_expect(ci.low == known[k].place && ci.high == known[k].n + 1 - known[k].place,
                  "n=%d: %g %g", known[k].n, ci.low, ci.high);
    }
    /* Many coins are nearly normal: n/2 - 1.96 sqrt(n)/2 = 956.2 of 2000. */
    const struct interval ci = stats_median_interval(x, MOST);
    cr_expect(fabs(ci.low - 957) <= 1 && ci.high == MOST + 1 - ci.low, "%g %g", ci.low, ci.high);
}

/* Agresti and Coull 1998, "Approximate is Better than Exact": none of ten reaches z^2 / (n + z^2). One of two
 * by hand: 1/2 -+ (z / 2) / sqrt(2 + z^2). */
Test(stats, interval_of_a_share)
{
    const double known[][4] = {
        {0, 10, 0, 0.27753}, {1, 10, 0.72247, 1}, {0.5, 2, 0.09453, 0.90547}};

    for (size_t k = 0; k < ARRAY_LEN(known); k++) {
        const struct interval ci = stats_share(known[k][0], known[k][1]);
        NUMBERS({ci.mid, known[k][0]}, {ci.low, known[k][2], 1e-5}, {ci.high, known[k][3], 1e-5});
    }
}

/* Noise with a true median of 1, i-th of n, z standard normal. */
typedef double noise_fn(const float *z, int i);

static double lognormal(const float *z, int i) { return exp(0.1 * (double)z[i]); }

/* Seven of ten blocks run in the fast mode around 1, three 40 % slower. The median of the mixture
 * is the fast mode's quantile 0.5/0.7, which is 0.5659 standard deviations up. */
static double bimodal(const float *z, int i)
{
    const bool slow = (double)z[i + 1000] > 0.5244; /* the upper 30 % */

    return (slow ? 1.4 : 1.0) + 0.02 * ((double)z[i] - (slow ? 0 : 0.5659));
}

/* AR(1) with coefficient 0.8: a machine that stays slow for a while. */
static double autocorrelated(const float *z, int i)
{
    double state = (double)z[0];

    for (int k = 1; k <= i; k++)
        state = 0.8 * state + 0.6 * (double)z[k];
    return 1 + 0.02 * state;
}

/* Percent of simulated runs whose interval holds the true median. */
static double coverage(noise_fn *noise, int n, uint64_t seed)
{
    enum { RUNS = 400, MOST = 100, DRAWS = 2000 };
    static float z[DRAWS];
    double x[MOST];
    int hits = 0;

    SKIP_SANITIZED("hundreds of intervals; other tests make one, too");

    for (int run = 0; run < RUNS; run++) {
        rng_normal(z, DRAWS, seed, (uint64_t)run, 0, 1);
        for (int i = 0; i < n; i++)
            x[i] = noise(z, i);
        sort_numbers(x, n);
        const struct interval ci = stats_median_interval(x, n);
        hits += ci.low <= 1 && 1 <= ci.high;
    }
    cr_log_info("n=%d seed=%d: %d of %d intervals hold the median", n, (int)seed, hits, RUNS);
    return 100.0 * hits / RUNS;
}

/* 95 % or more of 400: 1.1 % is a deviation, three of which are allowed. */
static const double LEAST_COVERAGE = 95 - 3.3;

Test(interval, covers_the_median_of_skewed_noise)
{
    for (int n = 6; n <= 60; n += 9) {
        const double got = coverage(lognormal, n, 11);
        cr_expect(got >= LEAST_COVERAGE, "%g %% at n=%d, seed 11", got, n);
    }
}

Test(interval, covers_the_median_of_two_modes)
{
    for (int n = 6; n <= 60; n += 9) {
        const double got = coverage(bimodal, n, 12);
        cr_expect(got >= LEAST_COVERAGE, "%g %% at n=%d, seed 12", got, n);
    }
}

/* A known limit: resampling treats samples as independent. Interleaved rounds, and ratios paired by
 * round, help against slow drift. */
Test(interval, is_too_narrow_for_autocorrelated_noise)
{
    const double got = coverage(autocorrelated, 30, 13);

    cr_expect(got > 30 && got < 80, "%g %%, seed 13", got);
}

Test(interval, paired_ratios_cancel_common_drift)
{
    enum { N = 15 };
    double before[N], after[N], work[2 * N];
    float z[N];

    rng_normal(z, N, 14, 0, 0, 0.01f);
    for (int i = 0; i < N; i++) { /* both slow down threefold; the new one takes 5 % longer */
        before[i] = 100 + 15 * i;
        after[i] = before[i] * 1.05 * exp((double)z[i]);
    }
    struct interval d = stats_log_ratio(after, before, N, work);
    cr_expect(d.low > log(1.03) && d.low < log(1.05) && log(1.05) < d.high && d.high < log(1.07),
              "[%g %g %g], seed 14", d.low, d.mid, d.high);

    const struct interval back = stats_log_ratio(before, after, N, work);
    cr_expect_float_eq(back.mid, -d.mid, NEAR(d.mid), "the opposite ratio");

    d = stats_log_ratio((const double[]){2, 4, 8}, (const double[]){1, 1, 1}, 3, work);
    NUMBERS({d.mid, log(4), NEAR(1)}, {d.low, log(2), NEAR(1)}, {d.high, log(8), NEAR(1)});
    d = stats_log_ratio((const double[]){2, 4, 0}, (const double[]){1, 1, 1}, 3, work);
    cr_expect(isnan(d.low) && isnan(d.mid) && isnan(d.high));
}

/* ---- the digest of a row ------------------------------------------------------------------- */

enum { MOST_SAMPLES = 700 };

/* n samples of two calls, 100 ns a call; the first `disturbed` of them preempted and at 1000. */
static void fill(struct sample *s, int n, int disturbed)
{
    for (int i = 0; i < n; i++)
        s[i] = (struct sample){.wall_ns = i < disturbed ? 2000 : 200,
                               .cpu_ns = 2 * (50 + i % 3),
                               .calls = 2,
                               .round = (uint32_t)i,
                               .involuntary_switches = i < disturbed ? 3 : 0,
                               .disturbed = i < disturbed};
}

Test(summary, disturbed_samples_leave_while_enough_remain)
{
    static const struct {
        int n, disturbed, used;
        bool noisy;
    } rule[] = {
        {10, 0, 10, false},  {10, 1, 9, false},  {12, 6, 6, false}, /* exactly half, exactly six */
        {11, 6, 11, true},                                        /* five remain, fewer than half */
        {20, 10, 10, false}, {20, 11, 20, true},                  /* half; one below */
        {10, 4, 6, false},   {10, 5, 10, true},  {9, 4, 9, true}, /* half, but only five */
        {5, 0, 5, false},    {5, 1, 5, true},    {3, 0, 3, false},
        {3, 3, 3, true},     {1, 1, 1, true},
    };
    struct sample s[20];
    double work[SUMMARY_WORK * 20];

    for (size_t k = 0; k < ARRAY_LEN(rule); k++) {
        fill(s, rule[k].n, rule[k].disturbed);
        const struct summary m = summarize(s, rule[k].n, work);
        cr_expect(m.used == rule[k].used && m.noisy == rule[k].noisy,
                  "%d of %d disturbed: used %d, noisy %d", rule[k].disturbed, rule[k].n, m.used,
                  m.noisy);
        cr_expect(m.samples == rule[k].n && m.disturbed == rule[k].disturbed);
        cr_expect_eq(m.switches, 3 * rule[k].disturbed);
        const bool counted = rule[k].noisy;
        cr_expect_eq(m.max, counted ? 1000 : 100);
    }
}

Test(summary, is_per_call_and_in_time)
{
    /* per call: 10 11 12 | 13 | 14 15 16; the disturbed 99 leaves */
    const double per_call[] = {10, 12, 11, 99, 13, 15, 14, 16}, cpu[] = {9, 9, 9, 50, 8, 8, 7, 8};
    struct sample s[8];
    double work[SUMMARY_WORK * 8];

    for (int i = 0; i < 8; i++)
        s[i] = (struct sample){.wall_ns = 4 * per_call[i],
                               .cpu_ns = 4 * cpu[i],
                               .calls = 4,
                               .involuntary_switches = i == 3,
                               .disturbed = i == 3};
    const struct summary m = summarize(s, 8, work);
    cr_expect(m.samples == 8 && m.used == 7 && m.disturbed == 1 && m.switches == 1 && !m.noisy);
    NUMBERS({m.min, 10}, {m.median, 13}, {m.max, 16}, {m.mean, 13}, {m.mad, 2}, {m.cpu_median, 8},
            {m.stddev, sqrt(28.0 / 6), NEAR(2)}, {m.drift_pct, 100 * (15.0 / 11 - 1), NEAR(36)});
    NUMBERS({m.ci_low, 10}, {m.ci_high, 16}, {m.p90, NAN}, {m.p99, NAN});
}

Test(summary, of_none_one_and_two)
{
    struct sample s[2];
    double work[SUMMARY_WORK * 2];

    fill(s, 2, 0);
    s[1].wall_ns = 400;
    struct summary m = summarize(s, 0, work);
    cr_expect(m.samples == 0 && m.used == 0 && !m.noisy);
    cr_expect(isnan(m.min) && isnan(m.median) && isnan(m.mean) && isnan(m.cpu_median));

    m = summarize(s, 1, work);
    cr_expect(m.min == 100 && m.median == 100 && m.max == 100 && m.mean == 100 && m.mad == 0);
    cr_expect(isnan(m.stddev) && isnan(m.ci_low) && isnan(m.ci_high) && isnan(m.drift_pct));

    m = summarize(s, 2, work);
    cr_expect(m.median == 150 && isnan(m.ci_low) && isnan(m.ci_high) && m.drift_pct == 100);
}

Test(summary, of_equal_samples_has_no_spread)
{
    static struct sample s[MOST_SAMPLES];
    static double work[SUMMARY_WORK * MOST_SAMPLES];

    fill(s, MOST_SAMPLES, 0);
    const struct summary m = summarize(s, MOST_SAMPLES, work);
    NUMBERS({m.min, 100}, {m.max, 100}, {m.ci_low, 100}, {m.ci_high, 100}, {m.p90, 100},
            {m.p99, 100}, {m.stddev, 0}, {m.mad, 0}, {m.drift_pct, 0});
}

/* p90 counts the samples that are used, not all that were taken. */
Test(summary, high_percentiles_count_used_samples)
{
    static struct sample s[64];
    static double work[SUMMARY_WORK * 64];

    fill(s, 64, 0);
    cr_expect_not(isnan(summarize(s, 64, work).p90));
    fill(s, 64, 1);
    cr_expect(isnan(summarize(s, 64, work).p90));
}
