/* SPDX-License-Identifier: MIT
 *
 * Requests that belong to one command. The command passes its command line on to a child, which
 * runs in the controlled environment of measuring children. */
#pragma once

#include "harness/worker/serve.h"

/* "train LINE": the answer is empty; E_INTERRUPTED if it was stopped and saved. */
extern const struct request request_train;

/* "check BACKEND BENCH LINE": the answer has a line "now WHAT" before each check and a line "tally
 * TENSORS PASSED FAILED SKIPPED BAD_FILES" after it, so that a crash loses nothing. */
extern const struct request request_check;

/* "judge LINE": the answer is what judge() says (harness/check/judge.h). */
extern const struct request request_judge;
