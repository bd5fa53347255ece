/* SPDX-License-Identifier: MIT
 *
 * What a sweep says of all its cases before the first, and of all rows when they are there. */
#pragma once

#include "harness/measure/session.h"

/* "note: llama is the same model as gqa here": with these options, by the first case of each variant. */
void say_same_models(struct session *s, const struct plan *plan);

/* Of all rows that the run has by now, also those before --resume: their rankings, or one document
 * with them. Nothing in formats of rows alone. */
void run_summary(struct session *s);

/* "next: bench plot", with the run where it is not the latest of `results`. */
void say_what_next(struct session *s);
