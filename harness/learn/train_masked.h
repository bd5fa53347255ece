/* SPDX-License-Identifier: MIT
 *
 * What a trainer does with hidden tokens in place of the next one (masked.h): whole segments without
 * a past, a share of whose tokens is hidden anew each time. */
#ifndef TRAIN_MASKED_H
#define TRAIN_MASKED_H

#include "train.h"

/* Models that see what follows fill in hidden tokens, the others predict the next one:
 * E_UNSUPPORTED for one with the other's objective, E_USAGE for a past. */
enum status masked_check(const struct config *c, const struct options *o, struct err *e);

/* After the text is open: how many tokens of a segment are hidden, and what they are called. */
void masked_open(struct trainer *t);

/* The next segments, and which of their places are scored. */
void masked_batch(struct trainer *t);

/* Of each window of the validation text the same tokens every time. */
struct validation masked_validate(struct trainer *t);

#endif
