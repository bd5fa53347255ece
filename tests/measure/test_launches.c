/* SPDX-License-Identifier: MIT
 *
 * Intervals over launches, against known answers and against simulated launches that differ more
 * than their blocks do. Seeds are fixed, so the counts are the same on every machine. */
#include "harness/measure/launches.h"
#include "harness/measure/verdict.h"

#include "tests/support/failure.h"
#include "tests/support/normal.h"

enum { LAUNCHES = 3, BLOCKS = 12, SAMPLES = LAUNCHES * BLOCKS };

/* Deviations of launches and of blocks, as logarithms. */
static const double BETWEEN = 0.04, WITHIN = 0.01;

static struct launches launches_of(const double *x, int n)
{
    struct launches l = {0};

    for (int i = 0; i < n; i++)
        launches_add(&l, &(double){x[i]}, 1);
    return l;
}

/* ---- known answers ------------------------------------------------------------------------- */

/* Of 1, 2, 3: mean 2, deviation 1, t(0.975; 2) = 4.30265272974946. */
Test(launches, interval_is_that_of_student)
{
    const struct interval inside = {1.9, 2.2, 2.3}, wide = {-9, 2, 9}, none = {NAN, 2, NAN};
    const struct launches l = launches_of((double[]){3, 1, 2}, 3),
                          one = launches_of(&inside.mid, 1);
    const double half = 4.30265272974946 / sqrt(3);

    const struct interval x = launches_interval(inside, &l);
    cr_expect_lt(fabs(x.low - (2 - half)) + fabs(x.high - (2 + half)), 1e-9, "[%g %g]", x.low,
                 x.high);
    NUMBERS({x.mid, inside.mid}, {launches_sd(&l), 1});
    cr_expect_eq(launches_interval(wide, &l).low, wide.low, "never narrower than inside a launch");
    cr_expect(isnan(launches_interval(none, &l).low), "few samples have none");
    NUMBERS({launches_interval(inside, &one).low, inside.low}, {launches_sd(&one), NAN});
}

/* Deviations 1 of three launches and 2 of five: squares 2 + 16 over 6 degrees of freedom, t(0.975; 6) = 2.44691185. */
Test(launches, noise_of_the_cases_of_a_run)
{
    struct launch_noise n = {0};

    cr_expect_eq(launch_noise_half(&n, 3), 0, "nothing is known");
    launch_noise_add(&n, 1, 3);
    launch_noise_add(&n, NAN, 3);
    launch_noise_add(&n, 9, 1);
    launch_noise_add(&n, 2, 5);
    cr_expect_lt(fabs(launch_noise_half(&n, 4) - 2.4469118511449692 * sqrt(18.0 / 6 / 4)), 1e-9);
    cr_expect_eq(launch_noise_half(&n, 1), 0, "one launch does not tell");
}

/* Equal deviations of 1 and three launches a side: Welch's 4 degrees of freedom, t = 2.7764451052,
 * a deviation of sqrt(2/3) of the difference. */
Test(launches, difference_is_that_of_welch)
{
    const struct interval inside = {9.9, 10, 10.1};
    const struct launches a = launches_of((double[]){1, 2, 3}, 3),
                          b = launches_of((double[]){13, 12, 11}, 3),
                          one = launches_of(&inside.mid, 1);
    const double half = 2.7764451051977987 * sqrt(2.0 / 3);

    const struct interval x = launches_difference(inside, &a, &b);
    cr_expect_lt(fabs(x.low - (10 - half)) + fabs(x.high - (10 + half)), 1e-9, "[%g %g]", x.low,
                 x.high);
    cr_expect_eq(launches_difference(inside, &a, &one).low, inside.low);
    cr_expect_eq(launches_difference(inside, &one, &b).high, inside.high);
}

/* Disturbed samples are most of the first launch, so that its median says whether they count: they do
 * where fewer than half of all would remain, and in CPU time in any case. */
Test(launches, of_samples_leave_out_disturbed_ones)
{
    enum { EACH = 12 };
    static const struct {
        int disturbed[2];
        double wall, cpu;
    } cases[] = {{{0, 0}, 200, 50},
                 {{7, 0}, 200, 250},
                 {{11, 0}, 200, 250},
                 {{11, 1}, 200, 250},
                 {{11, 2}, 4500, 250}};
    struct sample s[2 * EACH];
    double work[2 * EACH];

    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        for (int i = 0; i < 2 * EACH; i++) {
            const int launch = i % 2;
            const bool disturbed = i / 2 < cases[k].disturbed[launch];
            s[i] = (struct sample){.wall_ns = disturbed ? 9000
                                              : launch  ? 200
                                                        : 400,
                                   .cpu_ns = disturbed ? 500 : 100,
                                   .calls = 2,
                                   .launch = (uint32_t)launch,
                                   .disturbed = disturbed};
        }
        struct launches l = launches_of_samples(s, 2 * EACH, false, work);
        cr_assert_eq(l.n, 2);
        cr_expect_float_eq(l.x[0], log(cases[k].wall), 1e-12, "case %zu: %g", k, exp(l.x[0]));
        cr_expect_float_eq(l.x[1], log(100), 1e-12);
        l = launches_of_samples(s, 2 * EACH, true, work);
        cr_expect_float_eq(l.x[0], log(cases[k].cpu), 1e-12, "case %zu: %g", k, exp(l.x[0]));
        cr_expect_float_eq(l.x[1], log(50), 1e-12);
    }
    cr_expect_eq(launches_of_samples(s, 0, false, work).n, 0);
}

Test(launches, of_a_case_by_its_options)
{
    const struct {
        const char *line;
        int want;
    } rule[] = {{"", 3},
                {"--max-time 1", 3},
                {"--max-time 0.99", 1},
                {"--quick", 1},
                {"--quick --launches 5", 5},
                {"--launches 1", 1},
                {"--isolate none", 1},
                {"--isolate fork", 3}};

    for (size_t i = 0; i < ARRAY_LEN(rule); i++) {
        struct options o;
        MUST(options_parse_line(&o, rule[i].line, &failure));
        cr_expect_eq(case_launches(&o), rule[i].want, "\"%s\"", rule[i].line);
        options_free(&o);
    }
}

/* ---- simulated launches --------------------------------------------------------------------- */

/* Launches of a call of 1000 ns in truth. */
static void simulate(struct sample *s, int launches, struct synthetic *r)
{
    double level = 0;

    for (int i = 0; i < launches * BLOCKS; i++) {
        if (i % BLOCKS == 0)
            level = BETWEEN * normal(r);
        s[i] = (struct sample){.wall_ns = 1000 * exp(level + WITHIN * normal(r)),
                               .calls = 1,
                               .launch = (uint32_t)(i / BLOCKS)};
    }
}

/* Of 1000 intervals 95 % hold the truth: 950 with a deviation of sqrt(1000 * 0.95 * 0.05) = 7,
 * three of which are allowed below; the hull with the inner interval can only hold it more often.
 * Of one launch, whose median is off by 4 % in one deviation while its interval reaches some 0.6 %
 * to either side, fewer than a quarter do. */
Test(launches, interval_of_a_median_covers)
{
    enum { TRIALS = 1000 };
    struct synthetic r = {3, rng_stream("test.launches"), 0};
    struct sample s[SAMPLES];
    double work[SAMPLES * SUMMARY_WORK];
    int holds = 0, one_holds = 0;

    for (int t = 0; t < TRIALS; t++) {
        simulate(s, LAUNCHES, &r);
        const struct summary m = summarize(s, SAMPLES, work), one = summarize(s, BLOCKS, work);
        cr_expect(m.ci_low <= m.median && m.median <= m.ci_high);
        cr_expect(m.launches == LAUNCHES && one.launches == 1 && isnan(one.between_pct));
        holds += m.ci_low <= 1000 && 1000 <= m.ci_high;
        one_holds += one.ci_low <= 1000 && 1000 <= one.ci_high;
    }
    cr_expect_geq(holds, 950 - 3 * 7, "seed %d: %d of %d", (int)r.seed, holds, TRIALS);
    cr_expect_lt(one_holds, TRIALS / 4, "seed %d: %d of %d", (int)r.seed, one_holds, TRIALS);
}

/* The median of one sweep lies in the interval of another. Both have three launches, so their
 * difference over the deviation of the other is sqrt(2) times a t of two degrees of freedom:
 * P(|T| < 4.303 / sqrt(2)) = 90.7 %. Of 1000 pairs 907 with a deviation of 9, three allowed. The
 * median of all blocks is close to that of the middle launch, which varies by 1.16 times as much as
 * the mean: P(|T| < 4.303 / sqrt(1 + 1.35)) = 89.3 %, not independent of the deviation; so only the
 * lower bound by 893 is asked. */
Test(launches, median_lies_in_the_interval_of_another_sweep)
{
    enum { PAIRS = 1000 };
    struct synthetic r = {4, rng_stream("test.launches"), 0};
    struct sample s[SAMPLES];
    double work[SAMPLES * SUMMARY_WORK];
    int inside = 0;

    for (int t = 0; t < PAIRS; t++) {
        simulate(s, LAUNCHES, &r);
        const struct summary a = summarize(s, SAMPLES, work);
        simulate(s, LAUNCHES, &r);
        const struct summary b = summarize(s, SAMPLES, work);
        inside += b.ci_low <= a.median && a.median <= b.ci_high;
    }
    cr_expect_geq(inside, 893 - 3 * 10, "seed %d: %d of %d", (int)r.seed, inside, PAIRS);
}

/* Two sides that are the same, in launches whose layouts favour one of them by 2 %. */
static enum verdict a_a(bool paired, bool tell_launches, struct synthetic *r)
{
    struct pair p[SAMPLES];
    struct sample s[SIDES][SAMPLES];
    double work[2 * SAMPLES * PAIRS_WORK], level[SIDES] = {0};

    for (int i = 0; i < SAMPLES; i++) {
        const int launch = tell_launches ? i / BLOCKS : 0;
        for (int k = 0; k < SIDES; k++) {
            if (i % BLOCKS == 0)
                level[k] = 0.02 * normal(r);
            s[k][i] = (struct sample){.wall_ns = 1000 * exp(level[k] + WITHIN * normal(r)),
                                      .cpu_ns = 1000,
                                      .calls = 1,
                                      .launch = (uint32_t)launch};
            p[i].wall[k] = s[k][i].wall_ns;
            p[i].cpu[k] = 1000;
        }
        p[i].disturbed = false;
        p[i].launch = launch;
    }
    return paired
               ? change_of_pairs(p, SAMPLES, 1, 0, work).verdict
               : change_of_samples(s[BEFORE], SAMPLES, s[AFTER], SAMPLES, 1, 0, r->n, work).verdict;
}

static int shown(bool paired, bool tell_launches)
{
    enum { TRIALS = 100 };
    struct synthetic r = {5, rng_stream("test.aa"), 0};
    int n = 0;

    for (int t = 0; t < TRIALS; t++)
        n += a_a(paired, tell_launches, &r) != VERDICT_UNSHOWN;
    return n;
}

/* At most 5 % show a difference: 5 of 100 with a deviation of 2.2, three of which are allowed. The
 * blocks alone, which know nothing of launches, show more than that. */
Test(launches, no_difference_between_equal_sides)
{
    for (int paired = 0; paired <= 1; paired++) {
        const int with = shown(paired, true), without = shown(paired, false);
        cr_expect_leq(with, 11, "paired %d: %d of 100", paired, with);
        cr_expect_gt(without, 11, "paired %d: %d of 100", paired, without);
    }
}
