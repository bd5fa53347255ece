/* SPDX-License-Identifier: MIT
 *
 * Expressions of --filter over the key columns of a cell: key:value, !key:value, key<=N, key>=N,
 * key<N, key>N, key=N. Values match whole. */
#ifndef FILTER_H
#define FILTER_H

#include "harness/table/record.h"
#include "plan.h"

enum filter_op { FILTER_IS, FILTER_LESS, FILTER_LESS_EQUAL, FILTER_MORE, FILTER_MORE_EQUAL };

struct filter {
    bool negate;
    enum filter_op op;
    int key;          /* index in the table of keys */
    const char *text; /* value of a word; points into the expression */
    int number;       /* value of a number */
};

/* E_USAGE for what is not an expression. Keeps a pointer into `text`. */
enum status filter_parse(struct filter *f, const char *text, struct err *e);

/* A column that does not apply to the cell (clip of xl) matches nothing. */
bool filter_match(const struct filter *f, const struct bench_case *c);

/* The same for a row of latency, memory or perplexity. */
bool filter_match_row(const struct filter *f, const struct table *t, const void *row);

#endif
