/* SPDX-License-Identifier: MIT
 *
 * The learning rate over a training. */
#include "schedule.h"

#include <math.h>

/* How much of the way from the floor to the peak is left. */
static double height(const struct options *opt, double p)
{
    const double pi = 3.14159265358979;

    switch ((enum lr_schedule)opt->schedule) {
    case LR_COSINE:
        return 0.5 * (1 + cos(pi * p));
    case LR_LINEAR:
        return 1 - p;
    case LR_WSD:
        return fmin(1, (1 - p) / opt->lr_decay);
    case LR_CONSTANT:
        break;
    }
    return 1;
}

double train_lr(const struct options *opt, int step, double progress)
{
    const double warm = step < opt->lr_warmup ? (double)step / opt->lr_warmup : 1;
    const double floor = opt->lr_floor;

    return opt->lr * warm * (floor + (1 - floor) * height(opt, fmin(1, progress)));
}

enum status schedule_check(const struct options *opt, struct err *e)
{
    if (options_written(opt, "lr-decay") && opt->schedule != LR_WSD)
        return fail(e, E_USAGE,
                    "--lr-decay applies to --schedule wsd only  -> add that, or leave it out");
    if (options_written(opt, "lr-floor") && opt->schedule == LR_CONSTANT)
        return fail(e, E_USAGE, "--schedule constant has no --lr-floor  -> leave one of them out");
    return OK;
}
