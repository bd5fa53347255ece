/* SPDX-License-Identifier: MIT
 *
 * What a trainer does with a task in place of a text: it plays a segment of all episodes with the
 * model's own memory, and learns from it by the gradient through that segment. An action at step i
 * is drawn from the forward pass of the segment's first i + 1 observations, so what was played and
 * what is trained are one function, whatever the variant. */
#ifndef TRAIN_PLAY_H
#define TRAIN_PLAY_H

#include "train.h"

enum { PLAY_VALID = 128 }; /* episodes, at least */

/* Read the task of the options; t->corpus describes it as a text that has no symbols yet. */
enum status play_open(struct trainer *t, struct err *e);
void play_bind(struct trainer *t, struct arena *a);

/* Steps of the episodes before the next segment. */
int play_at(const struct trainer *t);
/* Steps that all episodes of the first `step` optimiser steps have: the last segment of an episode
 * may be shorter than others. */
int64_t play_frames(const struct trainer *t, int step);

/* Play the next segment, add the gradient of its loss to the parameters, keep its memory. */
void play_gradient(struct trainer *t, struct step_report *r);

/* Mean return of episodes that are never trained on, from the policy as it is; nll is what it lacks
 * of a reward of 1 in each step. */
struct validation play_validate(struct trainer *t);

/* Actions of the episodes so far, [B,play_at], which make them again. */
void play_actions(const struct trainer *t, float *to);
/* E_IO if an action is none of the task's. */
enum status play_again(struct trainer *t, const float *actions, const char *path, struct err *e);

#endif
