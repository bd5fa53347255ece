/* SPDX-License-Identifier: MIT
 *
 * Rows of a sweep in other forms than the screen's table: a table to paste with the screen's
 * columns, and the columns that --columns chooses, aligned. */
#pragma once

#include "result.h"

/* The names of the columns, with units, to be printed above the first row of a heading. */
void pasted_heading(FILE *f, enum format format, const char *heading);

/* `variant` and `check` as on the screen. */
void pasted_row(FILE *f, enum format format, const struct result *r, const struct latency_row *row,
                const char *variant);

/* A line of at most LINE_SIZE bytes: the names of the chosen columns (row NULL), or a row. Numbers
 * have units; rows come one by one, so widths are those of names and usual values. */
void chosen_line(char line[LINE_SIZE], const struct table *t, const struct selection *s,
                 const void *row);
