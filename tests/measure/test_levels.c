/* SPDX-License-Identifier: MIT
 *
 * Steps of made histories: found where they were planted, and rarely where there are none. Seeds are
 * fixed, so the counts are the same on every machine. */
#include "harness/measure/levels.h"
#include "tests/support/compared.h"

#include "tests/support/normal.h"

enum { RUNS = 20 };
static const double NOISE = 0.015;

/* 1, 1.2, 1.4 and 3, 3.2, 3.4: deviations of 0.2, a difference of 2 with a deviation of
 * 0.2 sqrt(2/3), 4 degrees of freedom, t(0.975; 4) = 2.7764451052. */
Test(levels, a_step_has_the_interval_of_student)
{
    const double x[] = {1, 1.2, 1.4, 3, 3.2, 3.4}, sd = 0.2 * sqrt(2.0 / 3);
    struct level_step s[6];

    cr_assert_eq(level_steps(x, 6, level_places(6), s), 1);
    NUMBERS({s[0].at, 3}, {s[0].before, 3}, {s[0].after, 3}, {s[0].diff.mid, 2, 1e-12},
            {s[0].diff.low, 2 - 2.7764451051977987 * sd, 1e-9},
            {s[0].diff.high, 2 + 2.7764451051977987 * sd, 1e-9},
            {s[0].p, level_places(6) * student_two_sided(2 / sd, 4), 1e-12});
    cr_expect_eq(level_steps(x, 6, 1000, s), 0, "one of 1000 places may look like that");
}

Test(levels, of_few_values_and_of_equal_ones)
{
    const double x[] = {1, 1, 1, 2, 2, 2, NAN, 2};
    struct level_step s[8];

    NUMBERS({level_places(3), 0}, {level_steps(x + 2, 3, 2, s), 0}, {level_steps(x, 3, 2, s), 0});
    cr_expect_eq(level_places(4), 4, "three ends, and the two values in the middle");
    cr_assert_eq(level_steps(x, 6, 5, s), 1);
    cr_expect(s[0].at == 3 && s[0].p == 0);
    cr_expect_eq(level_steps(x + 3, 5, 4, s), 0, "a value that is none shows nothing");
}

/* Ten deviations above the others: one value is an outlier wherever others stand on both sides, two
 * are a level, and so is one at either end. */
Test(levels, a_level_has_two_values_or_an_end)
{
    for (int length = 1; length <= 3; length++)
        for (int at = 0; at + length <= RUNS; at++) {
            const bool begins = at == 0, ends = at + length == RUNS;
            struct level_step s[RUNS];
            double x[RUNS];
            for (int i = 0; i < RUNS; i++)
                x[i] = (i % 2 ? 0.01 : -0.01) + (i >= at && i < at + length ? 0.3 : 0);
            const int n = level_steps(x, RUNS, level_places(RUNS), s);
            const int want = begins || ends ? 1 : length > 1 ? 2 : 0;
            cr_assert_eq(n, want, "%d from %d: %d steps", length, at, n);
            if (!begins && n > 0)
                cr_expect_eq(s[0].at, at, "%d from %d: %d", length, at, s[0].at);
            if (!ends && n > 0)
                cr_expect_eq(s[n - 1].at, at + length);
        }
}

/* At most 5 of 100 histories show a step that is not there: three deviations of 2.2 are allowed. */
Test(levels, histories_without_steps)
{
    struct synthetic r = {8, rng_stream("test.levels"), 0};
    int alarms = 0;

    for (int t = 0; t < 100; t++) {
        struct level_step s[RUNS];
        double x[RUNS];
        for (int i = 0; i < RUNS; i++)
            x[i] = NOISE * normal(&r);
        alarms += level_steps(x, RUNS, level_places(RUNS), s) > 0;
    }
    cr_expect_leq(alarms, 11, "seed %d: %d of 100", (int)r.seed, alarms);
}

/* 10 % are more than six deviations of a run: the place itself is missed only if a neighbour is as
 * far off as half of that, in 1 of 1000. So is a level of 20 % that lasts three runs; and one run at
 * the end, whose t is 6.5 with a deviation of 1 and some, where t(0.05 / 172; 18) = 4.5. */
Test(levels, planted_steps_are_found)
{
    struct synthetic r = {9, rng_stream("test.levels"), 0};
    int found = 0, both = 0, last = 0;

    for (int t = 0; t < 100; t++) {
        const int at = 3 + t % (RUNS - 6), back = at + 3;
        struct level_step s[RUNS];
        double x[RUNS], y[RUNS], z[RUNS];
        for (int i = 0; i < RUNS; i++) {
            const double noise = NOISE * normal(&r);
            x[i] = noise + (i >= at ? 0.1 : 0);
            y[i] = noise + (i >= at && i < back ? 0.2 : 0);
            z[i] = noise + (i == RUNS - 1 ? 0.1 : 0);
        }
        const int n = level_steps(x, RUNS, level_places(RUNS), s);
        for (int k = 0; k < n; k++)
            found += s[k].at == at;
        both += level_steps(y, RUNS, level_places(RUNS), s) >= 2 && s[0].at == at &&
                s[1].at == back && s[0].diff.mid > 0 && s[1].diff.mid < 0;
        last += level_steps(z, RUNS, level_places(RUNS), s) > 0;
    }
    cr_expect_geq(found, 98, "seed %d: %d of 100", (int)r.seed, found);
    cr_expect_geq(both, 90, "seed %d: %d of 100", (int)r.seed, both);
    cr_expect_geq(last, 90, "seed %d: %d of 100", (int)r.seed, last);
}
