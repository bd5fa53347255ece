/* SPDX-License-Identifier: MIT
 *
 * Trainers in one process, kept until the test ends. Functions that a test does not ask for a status
 * fail it. */
#pragma once

#include "harness/learn/train/train.h"
#include "harness/learn/train/train_files.h"

enum status trainer_open(struct trainer *t, const struct options *opt, struct err *e);

/* "train" and these words; where they do not say otherwise, with the reference, one thread, no pinning,
 * --batch 3, and two layers of 16 with two heads. */
struct options training_parse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void training_settle(struct options *o);
void training_open(struct trainer *t, const struct options *o);
void training_begin(struct trainer *t, struct options o); /* they are kept */

/* The loss of the last of these steps; the mean of all, at the first rate of the schedule. */
double training_steps(struct trainer *t, int steps);
double training_mean(struct trainer *t, int steps);
void training_save(struct trainer *t, const char *path);
void training_load(struct trainer *t, const char *path);

void expect_same_weights(const struct trainer *a, const struct trainer *b, const char *what);
/* `steps` at once and in two parts, by way of files at `path`: to the same bits. Time and best loss
 * continue, too. */
void expect_goes_on(const struct options *o, const char *path, int half, int steps,
                    const char *what);
