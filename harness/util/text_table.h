/* SPDX-License-Identifier: MIT
 *
 * Small tables of text for standard output: aligned for people, or CSV, JSON lines, Markdown. The
 * tables on disk are record.h's. */
#ifndef TEXT_TABLE_H
#define TEXT_TABLE_H

#include "harness/cli/options.h"

struct sheet_column {
    const char *name;
    bool number; /* right-aligned; no quotes in JSON */
    bool wide;   /* left out of the aligned form */
};

enum { SHEET_COLUMNS = 32 };

struct sheet {
    const struct sheet_column *column;
    int columns;
    char **text; /* [rows, columns] */
    int rows, cap;
    int at[SHEET_COLUMNS]; /* the columns to print */
    int shown;             /* 0: all */
};

/* Append a row; `text` has one entry per column, NULL is empty. */
enum status sheet_add(struct sheet *s, const char *const *text, struct err *e);

/* Print only these columns, in this order. E_USAGE for a name that the sheet does not have. */
enum status sheet_select(struct sheet *s, const struct names *columns, struct err *e);

/* `format` is FORMAT_AUTO for aligned columns on a terminal and CSV elsewhere. */
void sheet_print(FILE *f, const struct sheet *s, enum format format);

void sheet_free(struct sheet *s);

#endif
