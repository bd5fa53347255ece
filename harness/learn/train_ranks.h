/* SPDX-License-Identifier: MIT
 *
 * What several processes that train a model together must have: a batch that they divide, CPUs of their
 * own, a model that they can compute as one process would. */
#ifndef TRAIN_RANKS_H
#define TRAIN_RANKS_H

#include "harness/cli/options.h"
#include "harness/machine/pin.h"
#include "harness/util/ranks.h"
#include "variants/variant.h"

/* E_USAGE: they do not divide --batch. */
enum status ranks_fit_batch(const struct options *o, const struct ranks *r, struct err *e);
/* E_USAGE: some that are pinned run on each other. Collective. */
enum status ranks_have_places(const struct ranks *r, const struct team *team, struct err *e);
/* E_UNSUPPORTED: the model cannot be divided. */
enum status ranks_divide(const struct config *c, const struct options *o, const struct ranks *r,
                         struct err *e);

#endif
