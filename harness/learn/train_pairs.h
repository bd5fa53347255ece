/* SPDX-License-Identifier: MIT
 *
 * What a trainer does with an encoder and a decoder in place of one text (pairs.h): each sequence of
 * a batch is a pair, and the loss is that of the target. */
#ifndef TRAIN_PAIRS_H
#define TRAIN_PAIRS_H

#include "train.h"

/* Defaults that follow from the text: --seq is the length of its targets. E_USAGE for another one,
 * for a past, and for a text without pairs. */
enum status pairs_settle(struct options *o, struct err *e);

/* What the options ask for, after that. */
struct source_pair pairs_asked(const struct options *o);

/* After the texts are open. */
enum status pairs_open(struct trainer *t, struct err *e);

/* The next pairs. */
void pairs_batch(struct trainer *t);

/* Of all pairs of the validation text. */
struct validation pairs_validate(struct trainer *t);

#endif
