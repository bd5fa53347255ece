/* SPDX-License-Identifier: MIT
 *
 * A command line in one string, for the suites of options and plan. */
#pragma once

#include "harness/plan/plan.h"

/* options_parse of "bench" and the words of `line`, split at single blanks; a word of two quotes is
 * empty. What was parsed is kept until the test ends. The caller controls BENCH_*, TERM, CI and
 * NO_COLOR of the environment. */
enum status parse_words(struct options *o, const char *line, struct err *e);

/* The plan of a line on a machine with three cores, kept until the test ends; a failed assertion if
 * there is none. */
void must_plan(struct plan *p, struct options *o, const char *line);
enum status try_plan(struct plan *p, const char *line,
                     struct err *e); /* of a line that can be read */
struct plan planned(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The model of a line "xl --norm pre", with four layers and a memory of 16. */
struct config model_of_line(const char *line);

bool same_shape(const struct bench_case *a, const struct bench_case *b);
