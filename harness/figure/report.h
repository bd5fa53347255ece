/* SPDX-License-Identifier: MIT
 *
 * One self-contained page about runs: what was found, where, how to repeat it, the figures, every
 * row, what was left out, and the tables to take away. Everything on it comes from the tables. */
#ifndef REPORT_H
#define REPORT_H

#include "figure.h"

struct report {
    const struct plot_data *run;
    int runs;
    const char *const *figure; /* names; NULL = all */
    int figures;
    const volatile int *stop; /* raised to stop before the next figure: E_INTERRUPTED */
    int warnings;             /* things that are missing on the page and were said on it */
};

/* Write the page. Figures need gnuplot; without it the page says so and counts a warning. */
enum status report_write(FILE *f, struct report *r, struct err *e);

/* ---- parts of the page -------------------------------------------------------------------- */

/* Text with &, <, > and quotes escaped: for content and for attributes in double quotes. */
void html_text(FILE *f, const char *text);

/* A link that saves the bytes as NAME; they are in the link. */
void html_download(FILE *f, const char *name, const char *text, const struct bytes *bytes);

/* A value for people, by its column's unit; "" if empty. */
void html_value(FILE *f, const struct table *t, int column, const void *row);

/* Every row of a table. `first` are the columns to begin with (NULL-ended), which are shown in any
 * case; `rest` those that are shown where rows differ in them; NULL = all others. */
void report_rows(FILE *f, const struct table *t, const struct rows *rows, const char *id,
                 const char *const *first, const char *const *rest);

void report_verdict(FILE *f, const struct plot_data *d);
void report_machine(FILE *f, const struct plot_data *d);
enum status report_matrix(FILE *f, const struct plot_data *d, struct err *e);

/* Figures of run number `at`; what is left out goes to `left_out`. */
enum status report_figures(FILE *f, FILE *left_out, struct report *r, int at, struct err *e);

#endif
