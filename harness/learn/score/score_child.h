/* SPDX-License-Identifier: MIT
 *
 * Scoring a text in a child: `line` holds the options of score.h. The answer is a report with the
 * SCORE_NUMBERS and what computed them; before it come lines "share X" with what is done. */
#pragma once

#include "harness/util/progress.h"
#include "harness/worker/child.h"

extern const struct request request_score;

/* E_WRONG where the score is not finite: no perplexity follows from it. `show` (may be NULL) has
 * been begun and gets the share. */
enum status score_in_child(struct report *r, const char *line, const struct child_setup *setup,
                           struct progress_line *show, struct err *e);
