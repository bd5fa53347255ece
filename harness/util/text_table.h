/* SPDX-License-Identifier: MIT
 *
 * Small tables of text for standard output: aligned for people, or CSV, JSON lines, Markdown. The
 * tables on disk are record.h's. */
#ifndef TEXT_TABLE_H
#define TEXT_TABLE_H

#include "range.h"

#include <stdio.h>

/* Formats of standard output and of figures. */
enum format {
    FORMAT_AUTO,
    FORMAT_TABLE,
    FORMAT_CSV,
    FORMAT_JSONL,
    FORMAT_JSON,
    FORMAT_MD,
    FORMAT_FOM, /* of commands that measure: lines of figures of merit, at the end */
    FORMAT_SVG, /* from here on: figures only */
    FORMAT_PNG,
    FORMAT_PDF
};

/* Aligned columns for people? FORMAT_AUTO: if the stream is a terminal. */
bool format_is_table(enum format format, FILE *f);

struct text_table_column {
    const char *name;
    bool number; /* right-aligned; no quotes in JSON */
    bool wide;   /* left out of the aligned form */
    int spare; /* above 0: left out of the aligned form on a narrow terminal, the greatest first, of
                  * several the last */
    int least; /* there it may wrap in so many columns; 0: it never wraps */
};

enum { TEXT_TABLE_COLUMNS = 64 };

struct text_table {
    const struct text_table_column *column;
    int columns;
    char **text; /* [rows, columns] */
    int rows;
    int at[TEXT_TABLE_COLUMNS]; /* the columns to print */
    int shown;                  /* 0: all */
    bool quiet;                 /* do not say what a narrow terminal leaves out */
};

/* Append a row; `text` has one entry per column, NULL means empty. */
enum status text_table_add(struct text_table *s, const char *const *text, struct err *e);

/* Print only these columns, in this order. E_USAGE for a name that the table does not have. */
enum status text_table_select(struct text_table *s, const struct names *columns, struct err *e);

/* One row of n texts, or the column names (text NULL), as CSV, JSON or Markdown, which need no
 * widths. JSON has no line of names; FORMAT_JSON is a row of JSON lines without its line end. */
void text_row_print(FILE *f, enum format format, const struct text_table_column *column,
                    const char *const *text, int n);

/* FORMAT_AUTO: aligned columns on a terminal, CSV elsewhere. FORMAT_JSON: an array of the rows. */
void text_table_print(FILE *f, const struct text_table *s, enum format format);

/* Columns of its aligned form, if nothing wraps. */
int text_table_width(const struct text_table *s);

void text_table_free(struct text_table *s);

#endif
