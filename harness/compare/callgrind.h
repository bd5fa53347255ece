/* SPDX-License-Identifier: MIT
 *
 * Instructions of a case, counted by valgrind's callgrind inside the measured function only. Counts
 * repeat exactly, independent of other load. */
#pragma once

#include "harness/worker/child.h"

/* E_UNSUPPORTED without valgrind. */
enum status count_ready(struct err *e);

/* valgrind does not know AVX-512, and counts of waiting threads are meaningless. */
bool callgrind_applies(const struct bench_case *c);

/* Instructions of a fixed number of calls, by `program`. */
enum status callgrind_count(double *n, const struct bench_case *c, const char *program,
                            const struct child_setup *shared, struct err *e);
