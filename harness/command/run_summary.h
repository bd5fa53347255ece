/* SPDX-License-Identifier: MIT
 *
 * What a sweep prints on standard output when all rows are there, and what one does with them. */
#ifndef RUN_SUMMARY_H
#define RUN_SUMMARY_H

#include "harness/measure/session.h"

/* Of all rows that the run has by now, also those before --resume: their rankings, or one document
 * with them. Nothing in formats of rows alone. */
void run_summary(struct session *s);

/* "next: bench plot", with the run where it is not the latest of `results`. */
void say_what_next(struct session *s);

#endif
