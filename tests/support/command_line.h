/* SPDX-License-Identifier: MIT
 *
 * A command line in one string, for the suites of options and plan. */
#ifndef COMMAND_LINE_H
#define COMMAND_LINE_H

#include "harness/plan/plan.h"

/* options_parse of "bench" and the words of `line`, split at single blanks; a word of two quotes is
 * empty. The caller controls BENCH_*, TERM, CI and NO_COLOR of the environment. */
enum status parse_words(struct options *o, const char *line, struct err *e);

/* The plan of a line on a machine with three cores; a failed assertion if there is none. */
void must_plan(struct plan *p, struct options *o, const char *line);
void drop_plan(struct plan *p, struct options *o);

bool same_shape(const struct bench_case *a, const struct bench_case *b);

#endif
