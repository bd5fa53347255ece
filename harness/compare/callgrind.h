/* SPDX-License-Identifier: MIT
 *
 * Instructions of a cell, counted by valgrind's callgrind inside the measured function only. Counts
 * repeat exactly, whatever else the machine does. */
#ifndef CALLGRIND_H
#define CALLGRIND_H

#include "harness/worker/child.h"

/* E_UNSUPPORTED where there is no valgrind. */
enum status count_ready(struct err *e);

/* valgrind knows no AVX-512 and the count of waiting threads means nothing. */
bool callgrind_applies(const struct bench_case *c);

/* Instructions of a fixed number of calls, by `program`. */
enum status callgrind_count(double *n, const struct bench_case *c, const char *program,
                            const struct child_setup *shared, struct err *e);

#endif
