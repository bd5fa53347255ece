/* SPDX-License-Identifier: MIT
 *
 * Learning rates of whole trainings against their schedules, written down here once more. */
#include "harness/cli/option_table.h"
#include "harness/learn/train/schedule.h"

#include <criterion/criterion.h>

static const double pi = 3.14159265358979324;

static const char *name_of(const struct options *o)
{
    return option_specs[option_find("schedule")].words[o->schedule];
}

/* Of step s of S, behind a peak at step P: the share of the way from floor to peak. */
static double by_hand(const struct options *o, int s, int S, int P)
{
    const double p = (double)(s - P) / (S - P);
    const double line = (double)(S - s) / (o->lr_decay * S);

    switch ((enum lr_schedule)o->schedule) {
    case LR_COSINE:
        return (1 + cos(pi * p)) / 2;
    case LR_LINEAR:
        return 1 - p;
    case LR_WSD:
        return P > (1 - o->lr_decay) * S ? 1 - p : line > 1 ? 1 : line;
    case LR_CONSTANT:
        break;
    }
    return 1;
}

/* The rate as a training by steps asks for it. */
static double rate(const struct options *o, int s, int S)
{
    return train_lr(o, s, (double)(s - 1) / S);
}

static void expect_training(const struct options *o, int S)
{
    const int P = o->lr_warmup > 1 ? o->lr_warmup : 1;
    const bool falls = o->schedule != LR_CONSTANT && P < S;

    for (int s = 1; s <= S; s++) {
        const double is = rate(o, s, S);
        const double want = s <= P
                                ? o->lr * s / P
                                : o->lr * (o->lr_floor + (1 - o->lr_floor) * by_hand(o, s, S, P));
        /* A few roundings of numbers up to --lr. */
        cr_assert_float_eq(is, want, 1e-14 * o->lr,
                           "%s, warm-up %d, step %d of %d: %.17g, not %.17g", name_of(o),
                           o->lr_warmup, s, S, is, want);
        cr_assert(is >= 0 && is <= o->lr);
    }
    if (P <= S)
        cr_assert_eq(rate(o, P, S), o->lr, "%s, warm-up %d: the peak of %d steps", name_of(o),
                     o->lr_warmup, S);
    if (falls)
        cr_assert_eq(rate(o, S, S), o->lr * o->lr_floor, "%s, warm-up %d: the end of %d steps",
                     name_of(o), o->lr_warmup, S);
}

/* Every length of training up to one that is longer than most warm-ups, and some in which quotients of
 * steps are rounded. */
Test(schedule, reaches_its_peak_and_its_floor)
{
    static const int steps[] = {1, 2, 3, 4, 9, 10, 11, 12, 20, 21, 49, 107, 1000, 1500, 100003};
    static const int warm[] = {0, 1, 2, 3, 9, 10, 11, 19, 20, 21, 100, 1000};
    static const double floors[] = {0.1, 0.25, 0, 1}, decays[] = {0.2, 0.5, 1};

    for (int schedule = LR_COSINE; schedule <= LR_CONSTANT; schedule++)
        for (size_t k = 0; k < ARRAY_LEN(steps) * ARRAY_LEN(warm); k++)
            for (size_t f = 0; f < ARRAY_LEN(floors); f++)
                for (size_t d = 0; d < (schedule == LR_WSD ? ARRAY_LEN(decays) : 1); d++) {
                    const struct options o = {.lr = 0.03,
                                              .schedule = schedule,
                                              .lr_warmup = warm[k % ARRAY_LEN(warm)],
                                              .lr_floor = floors[f],
                                              .lr_decay = decays[d]};
                    expect_training(&o, steps[k / ARRAY_LEN(warm)]);
                }
}

/* Rates by hand, one step before, at and behind each corner of 20 steps. */
Test(schedule, corners)
{
    static const struct {
        enum lr_schedule schedule;
        int warm, step;
        double want;
    } at[] = {
        {LR_COSINE, 10, 1, 0.1},    {LR_COSINE, 10, 9, 0.9},
        {LR_COSINE, 10, 10, 1},     {LR_COSINE, 10, 15, 0.625},
        {LR_COSINE, 10, 20, 0.25},  {LR_COSINE, 0, 1, 1},
        {LR_COSINE, 20, 20, 1},     {LR_COSINE, 21, 20, 20 / 21.0},
        {LR_COSINE, 19, 19, 1},     {LR_COSINE, 19, 20, 0.25},
        {LR_LINEAR, 10, 11, 0.925}, {LR_LINEAR, 10, 19, 0.325},
        {LR_LINEAR, 10, 20, 0.25},  {LR_LINEAR, 0, 1, 1},
        {LR_LINEAR, 1, 1, 1},       {LR_LINEAR, 2, 1, 0.5},
        {LR_WSD, 10, 11, 1},        {LR_WSD, 10, 16, 1},
        {LR_WSD, 10, 17, 0.8125},   {LR_WSD, 10, 20, 0.25},
        {LR_WSD, 18, 18, 1},        {LR_WSD, 18, 19, 0.625},
        {LR_WSD, 18, 20, 0.25},     {LR_CONSTANT, 10, 9, 0.9},
        {LR_CONSTANT, 10, 20, 1},
    };

    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        const struct options o = {.lr = 3,
                                  .schedule = at[i].schedule,
                                  .lr_warmup = at[i].warm,
                                  .lr_floor = 0.25,
                                  .lr_decay = 0.2};
        cr_expect_float_eq(rate(&o, at[i].step, 20), 3 * at[i].want, 1e-14, "%s, %d, step %d",
                           name_of(&o), o.lr_warmup, at[i].step);
    }
}

/* By the clock: at a steady pace the rate is that of the steps which the time suffices for, at any other
 * it is between floor and peak, which the warm-up still reaches, and ends at the floor. */
Test(schedule, by_the_clock)
{
    enum { STEPS = 500 };

    for (int schedule = LR_COSINE; schedule < LR_CONSTANT; schedule++)
        for (int warm = 0; warm <= 100; warm += 50) {
            const struct options o = {
                .lr = 2, .schedule = schedule, .lr_warmup = warm, .lr_floor = 0.1, .lr_decay = 0.2};
            double time = 0;
            for (int s = 1; s <= STEPS; s++) {
                const double steady = train_lr(&o, s, (s - 1) * 0.25 / (STEPS * 0.25));
                const double uneven = train_lr(&o, s, time);
                cr_expect_float_eq(steady, rate(&o, s, STEPS), 1e-14);
                cr_expect(s <= warm || (uneven >= 0.2 && uneven <= 2), "%s, %d, step %d: %g",
                          name_of(&o), warm, s, uneven);
                cr_expect(s != warm || uneven == 2);
                cr_expect(s <= warm || time < 1 || uneven == 0.2);
                time += (s % 7 == 0 ? 3.0 : 0.5 + s % 3 * 0.2) / STEPS;
            }
            cr_expect_gt(time, 1);
            cr_expect_eq(train_lr(&o, 1000, 2), 0.2, "after the end it stays there");
        }
}
