/* SPDX-License-Identifier: MIT
 *
 * Requests that belong to one command. The command passes its command line on to a child, which
 * runs in the controlled environment of measuring children. */
#pragma once

#include "harness/worker/child.h"

/* "train LINE": the answer is empty; E_INTERRUPTED if it was stopped and saved. */
extern const struct request request_train;

/* "check BACKEND BENCH LINE": the answer has a line "now WHAT" before each check and a line "tally
 * TENSORS PASSED FAILED SKIPPED BAD_FILES" after it, so that a crash loses nothing. */
extern const struct request request_check;

/* "judge LINE": the answer is what judge() says (harness/check/judge.h). */
extern const struct request request_judge;

/* One training in a child of its own, as `bench train` runs it: for commands that run many.
 * `o` was read from a command line (options_parse_again), which the child reads again. Waits for
 * the end. E_INTERRUPTED: stopped and saved; E_CHILD says how the child died. */
enum status training_run(const struct options *o, const struct child_setup *setup, struct err *e);
