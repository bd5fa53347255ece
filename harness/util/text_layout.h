/* SPDX-License-Identifier: MIT
 *
 * Aligned columns that fit the terminal: texts wrap inside their columns, and columns that can be
 * spared are left out where even that does not suffice. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct text_table_column {
    const char *name;
    bool number; /* right-aligned; no quotes in JSON */
    bool wide;   /* not for people: left out of what they see */
    int spare; /* above 0: left out of the aligned form on a narrow terminal, the greatest first, of
                  * several the last */
    int least; /* there it may wrap in so many columns; 0: it never wraps */
};

enum { TEXT_TABLE_COLUMNS = 64 };

struct text_layout {
    int n;                      /* columns shown */
    int at[TEXT_TABLE_COLUMNS]; /* their indices among those asked for */
    int width[TEXT_TABLE_COLUMNS];
    const char *left_out[TEXT_TABLE_COLUMNS + 1]; /* names, NULL-terminated */
};

/* Choose columns and widths; `natural` is the width of each column's longest text. */
void text_layout_fit(struct text_layout *l, const struct text_table_column *column,
                     const int *natural, int n, int width);

/* One row; it takes as many lines as its longest column. Lines do not end in blanks. */
void text_layout_print(FILE *f, const struct text_layout *l, const struct text_table_column *column,
                       const char *const *text);
