/* SPDX-License-Identifier: MIT
 *
 * Between cases and rows: choices as columns, and --filter over rows. */
#pragma once

#include "harness/plan/filter.h"
#include "record.h"

/* The columns of the choices. */
void key_row_choose(struct key_row *row, const struct bench_case *c);

/* filter_match for a row of latency, memory or perplexity. */
bool filter_match_row(const struct filter *f, const struct table *t, const void *row);

/* Of these tables, by enum table_id, keep only the rows of latency, memory and perplexity that
 * match every expression. E_USAGE for an invalid one, and for a value that neither the program nor
 * a row has. */
enum status rows_filter(struct rows *of, const struct names *expressions, struct err *e);
