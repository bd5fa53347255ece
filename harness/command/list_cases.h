/* SPDX-License-Identifier: MIT
 *
 * The planned matrix on standard output: `bench list cases` and `--dry-run`. */
#ifndef LIST_CASES_H
#define LIST_CASES_H

#include "harness/cli/options.h"

/* Plan, print every case on standard output and their number on stderr; sets default_threads.
 * Returns the exit code. */
int list_cases(struct options *opt);

#endif
