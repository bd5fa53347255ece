/* SPDX-License-Identifier: MIT
 *
 * Scoring in a child. A text: `line` holds the options of score.h, the answer is a report with the
 * SCORE_NUMBERS and what computed them; before it come lines "share X" with what is done. Episodes
 * (play_child.c): `line` is one of bench eval, the answer has the numbers of the score. */
#pragma once

#include "harness/util/progress.h"
#include "harness/worker/child.h"
#include "play_score.h"

extern const struct request request_score, request_play;

/* E_WRONG where the score is not finite: no perplexity follows from it. `show` (may be NULL) has
 * been begun and gets the share. */
enum status score_in_child(struct report *r, const char *line, const struct child_setup *setup,
                           struct progress_line *show, struct err *e);
enum status play_in_child(struct play_score *out, const char *line, const struct child_setup *setup,
                          struct err *e);
