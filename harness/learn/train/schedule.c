/* SPDX-License-Identifier: MIT
 *
 * The learning rate over a training. */
#include "schedule.h"

/* What is left of the way from the peak to the floor, where `left` is of the steps behind the peak, and
 * these are `share` of all. */
static double height(const struct options *opt, double left, double share)
{
    const double pi = 3.14159265358979;

    switch ((enum lr_schedule)opt->schedule) {
    case LR_COSINE:
        return 0.5 * (1 - cos(pi * left));
    case LR_LINEAR:
        return left;
    case LR_WSD:
        return fmin(1, left * fmax(1, share / opt->lr_decay));
    case LR_CONSTANT:
        break;
    }
    return 1;
}

double train_lr(const struct options *opt, int step, double progress)
{
    const int peak = max_int(1, opt->lr_warmup);
    const double floor = opt->lr_floor;

    if (step <= peak)
        return opt->lr * ((double)step / peak);
    if (progress <= 0)
        return opt->lr;
    const double steps = (step - 1) / progress; /* of the training, at the pace so far */
    const double left = steps > step ? (steps - step) / (steps - peak) : 0;
    return opt->lr * (floor + (1 - floor) * height(opt, left, (steps - peak) / steps));
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
