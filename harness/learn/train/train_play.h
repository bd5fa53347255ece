/* SPDX-License-Identifier: MIT
 *
 * What a trainer does with a task in place of a text: it plays a segment of all episodes with the
 * model's own memory, and learns from it by the gradient through that segment. An action at step i
 * is drawn from the forward pass of the segment's first i + 1 observations, so what was played and
 * what is trained are one function, whatever the variant. */
#pragma once

#include "trainer.h"

enum { PLAY_VALID = 128 }; /* episodes, at least */

/* Steps of the episodes before the next segment. */
int play_at(const struct trainer *t);
/* Steps that all episodes of the first `step` optimiser steps have: the last segment of an episode
 * may be shorter than others. */
int64_t play_frames(const struct trainer *t, int step);

/* Actions of the episodes so far, [B,play_at], which make them again. */
void play_actions(const struct trainer *t, float *to);
/* E_IO if an action is none of the task's. */
enum status play_again(struct trainer *t, const float *actions, const char *path, struct err *e);
