/* SPDX-License-Identifier: MIT
 *
 * Expressions of --filter over the key columns of a case: key:value, !key:value, key<=N, key>=N,
 * key<N, key>N, key=N. Values match as a whole. */
#pragma once

#include "case.h"

/* Which of the three a value may be to match. */
enum { FILTER_LESS = 1, FILTER_IS = 2, FILTER_MORE = 4 };

struct filter {
    bool negate;
    int op;           /* of these */
    int key;          /* which choice: chosen_at() */
    const char *text; /* the value; points into the expression */
    bool word;        /* the value is a word, although the choice is a number */
    int number;       /* the value, where the choice is a number */
};

/* E_USAGE for a malformed expression. Keeps a pointer into `text`. */
enum status filter_parse(struct filter *f, const char *text, struct err *e);

/* E_USAGE if the value is a word that no registry knows: it would match nothing. */
enum status filter_check(const struct filter *f, struct err *e);

/* A column that does not apply to the case (clip of xl) matches nothing. */
bool filter_match(const struct filter *f, const struct bench_case *c);

/* Does a value of its choice, given as text, match? */
bool filter_match_text(const struct filter *f, const char *text);
