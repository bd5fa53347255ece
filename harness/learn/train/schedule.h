/* SPDX-License-Identifier: MIT
 *
 * The learning rate over a training. */
#pragma once

#include "harness/cli/options.h"

/* Learning rate of step (from 1), which begins at `progress` in [0,1) of the way. It rises by --lr /
 * --lr-warmup a step to --lr, the peak, which the first step has without a warm-up. Behind the peak, f
 * is --lr-floor and p goes from 0 at the peak to 1 in the last step; --lr is multiplied by
 *   cosine    f + (1 - f) (1 + cos(pi p)) / 2                (Loshchilov and Hutter 2017)
 *   linear    f + (1 - f) (1 - p)
 *   wsd       1 until the last --lr-decay of the training, then a line to f: warm-up, stable, decay
 *             (Hu et al. 2024, arXiv:2404.06395; the line: Haegele et al. 2024, arXiv:2405.18392)
 *   constant  1
 * By the clock the last step is estimated from the pace so far. */
double train_lr(const struct options *opt, int step, double progress);

/* E_USAGE if the options that were written name a part that the schedule does not have. */
enum status schedule_check(const struct options *opt, struct err *e);
