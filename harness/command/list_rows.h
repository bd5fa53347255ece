/* SPDX-License-Identifier: MIT
 *
 * bench list rows: what each variant computes in each workload, beside its control. */
#ifndef LIST_ROWS_H
#define LIST_ROWS_H

#include "harness/cli/options.h"

/* The exit code. */
int list_rows(struct options *opt);

#endif
