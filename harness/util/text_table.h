/* SPDX-License-Identifier: MIT
 *
 * Small tables of text for standard output: aligned for people, to paste (Markdown, LaTeX), or
 * for programs (CSV, JSON lines). The tables on disk are record.h's. */
#pragma once

#include "range.h"
#include "terminal.h"
#include "text_layout.h"
#include "units.h"

/* Formats of standard output and of figures. */
enum format {
    FORMAT_AUTO,
    FORMAT_TABLE,
    FORMAT_CSV,
    FORMAT_JSONL,
    FORMAT_JSON,
    FORMAT_MD,
    FORMAT_TEX, /* LaTeX with booktabs: all but the rows is a comment, so that it can be \input */
    FORMAT_FOM, /* of commands that measure: lines of figures of merit, at the end */
    FORMAT_SVG, /* from here on: figures only */
    FORMAT_PNG,
    FORMAT_PDF
};

/* Aligned columns for people? FORMAT_AUTO: if the stream is a terminal. */
bool format_is_table(enum format format, FILE *f);

/* Markdown or LaTeX? These show what the aligned form shows, on paper as wide as it likes. */
static inline bool format_is_pasted(enum format format)
{
    return format == FORMAT_MD || format == FORMAT_TEX;
}

struct text_table {
    const struct text_table_column *column;
    int columns;
    char **text; /* [rows, columns] */
    int rows;
    int cells;                  /* of the last row that is begun; 0: it is whole */
    int at[TEXT_TABLE_COLUMNS]; /* the columns to print */
    int shown;                  /* 0: all */
    bool quiet;                 /* do not say what a narrow terminal leaves out */
};

/* Append a row; `text` has one entry per column, NULL means empty. */
void text_table_add(struct text_table *s, const char *const *text);

/* Append a cell to the row that is begun; behind a whole row it begins the next. */
void text_table_cell(struct text_table *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A number as such a text, by a format for one double; "" where it is not finite. */
enum { NUMBER_SIZE = 32 };
const char *text_number(char text[NUMBER_SIZE], const char *format, double x);
/* As a cell. */
void text_table_number(struct text_table *s, const char *format, double x);

/* Print only these columns, in this order. E_USAGE for a name that the table does not have. */
enum status text_table_select(struct text_table *s, const struct names *columns, struct err *e);

/* One row of n texts, or the column names (text NULL), as CSV, JSON, Markdown or LaTeX, which need no
 * widths. JSON has no line of names; FORMAT_JSON is a row of JSON lines without its line end. */
void text_row_print(FILE *f, enum format format, const struct text_table_column *column,
                    const char *const *text, int n);

/* After the last row, what ends a table of such rows: LaTeX has something. */
void text_rows_end(FILE *f, enum format format);

/* A line above or below the rows of a table for people: in LaTeX a comment, in Markdown a paragraph. */
#define text_above(f, format, ...) text_beside(f, format, true, __VA_ARGS__)
#define text_below(f, format, ...) text_beside(f, format, false, __VA_ARGS__)
void text_beside(FILE *f, enum format format, bool above, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* FORMAT_AUTO: aligned columns on a terminal, CSV elsewhere. FORMAT_JSON: an array of the rows. */
void text_table_print(FILE *f, const struct text_table *s, enum format format);

/* As a CSV file. E_NOMEM, E_IO. */
enum status text_table_write(const struct text_table *s, const char *path, struct err *e);

/* Columns of its aligned form, if nothing wraps. */
int text_table_width(const struct text_table *s);

void text_table_free(struct text_table *s);
