/* SPDX-License-Identifier: MIT
 *
 * Playing episodes with a checkpoint in a child, for commands that score many. */
#pragma once

#include "harness/worker/child.h"
#include "play_score.h"

/* "play LINE": the answer has the numbers of the score. */
extern const struct request request_play;

/* play_score of the options of a line of bench eval. */
enum status play_in_child(struct play_score *out, const char *line, const struct child_setup *setup,
                          struct err *e);
