/* SPDX-License-Identifier: MIT
 *
 * A trainer in one process. */
#ifndef OPEN_TRAINER_H
#define OPEN_TRAINER_H

#include "harness/learn/train.h"
#include "harness/learn/train_files.h"

static inline enum status trainer_open(struct trainer *t, const struct options *opt, struct err *e)
{
    return trainer_open_ranked(t, opt, &(struct ranks){.count = 1, .nodes = 1}, e);
}

#endif
