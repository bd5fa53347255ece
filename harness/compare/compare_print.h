/* SPDX-License-Identifier: MIT
 *
 * Comparisons on standard output: a table for people (also Markdown, LaTeX), CSV or JSON. */
#pragma once

#include "compare.h"

/* A word of verdict_name; "changed" if an exact number differs and the time is not
 * slower. */
const char *comparison_word(const struct comparison *c);

/* Print all; `columns` selects from the long form (csv, json), E_USAGE for unknown ones. */
enum status comparisons_print(FILE *f, const struct comparisons *c, enum format format,
                              const struct names *columns, struct err *e);

/* Number of comparisons with times and this verdict. */
int comparisons_count(const struct comparisons *c, enum verdict v);

/* Those with times that are neither the same nor firmly faster or slower. */
int comparisons_undecided(const struct comparisons *c);

/* "geometric mean of 4: new -12.3 % [-12.9 -11.7]", one line per name; nothing below two. */
void comparisons_print_means(FILE *f, enum format format, const struct comparisons *c);

/* What all labels say is said once, above them: take the words that all have out of them, in place,
 * and put them into `shared` in the order of the first label. Nothing is taken from a single label,
 * nor if one would be empty. */
void comparisons_share(struct comparison *c, int n, char shared[sizeof(c->label)]);
