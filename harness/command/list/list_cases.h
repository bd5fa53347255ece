/* SPDX-License-Identifier: MIT
 *
 * The planned matrix on standard output: `bench list cases` and `--dry-run`. */
#pragma once

#include "harness/cli/options.h"

/* Plan, print every case on standard output and their number on stderr; sets default_threads. *code:
 * EXIT_NOTHING_TO_DO if there are none. */
enum status list_cases(struct options *opt, int *code, struct err *e);
