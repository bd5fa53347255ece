/* SPDX-License-Identifier: MIT
 *
 * Learning rates at points of their schedules, computed by hand. */
#include "harness/learn/schedule.h"

#include <criterion/criterion.h>

Test(schedule, warms_up_and_falls_to_a_tenth)
{
    struct options o = {.lr = 2, .lr_warmup = 10, .schedule = LR_COSINE, .lr_floor = 0.1};

    cr_expect_float_eq(train_lr(&o, 1, 0), 0.2, 1e-12);
    cr_expect_float_eq(train_lr(&o, 10, 0), 2, 1e-12);
    cr_expect_float_eq(train_lr(&o, 500, 0.5), 1.1, 1e-9);
    cr_expect_float_eq(train_lr(&o, 1000, 1), 0.2, 1e-9);
    cr_expect_float_eq(train_lr(&o, 1000, 2), 0.2, 1e-9, "after the end it stays there");
    o.schedule = LR_CONSTANT;
    cr_expect_float_eq(train_lr(&o, 1000, 1), 2, 1e-12);
}

/* rate / --lr by the way that is done; the floor is a quarter, the decay the last fifth. */
Test(schedule, is_its_line)
{
    static const struct {
        enum lr_schedule schedule;
        double progress, want;
    } at[] = {{LR_LINEAR, 0, 1},      {LR_LINEAR, 0.5, 0.625}, {LR_LINEAR, 1, 0.25},
              {LR_LINEAR, 1.5, 0.25}, {LR_WSD, 0, 1},          {LR_WSD, 0.5, 1},
              {LR_WSD, 0.8, 1},       {LR_WSD, 0.9, 0.625},    {LR_WSD, 1, 0.25},
              {LR_WSD, 2, 0.25},      {LR_COSINE, 0.5, 0.625}, {LR_COSINE, 1, 0.25}};

    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        const struct options o = {
            .lr = 3, .schedule = at[i].schedule, .lr_floor = 0.25, .lr_decay = 0.2};
        cr_expect_float_eq(train_lr(&o, 1, at[i].progress), 3 * at[i].want, 1e-9, "%d at %g",
                           (int)at[i].schedule, at[i].progress);
    }
    const struct options warm = {.lr = 3, .schedule = LR_WSD, .lr_warmup = 4, .lr_decay = 0.2};
    cr_expect_float_eq(train_lr(&warm, 1, 0), 0.75, 1e-9);
}
