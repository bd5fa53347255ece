/* SPDX-License-Identifier: MIT
 *
 * The options of one training, complete and possible: for `bench train` and for the jobs of a
 * study. */
#pragma once

#include "harness/cli/options.h"

/* Fill in what depends on the machine and the build (text, `threads`, the fastest backend) and
 * check the rest: one value of each axis, a file for the weights, a model that can be trained.
 * E_USAGE, E_UNSUPPORTED. */
enum status train_settle(struct options *o, int threads, struct err *e);
