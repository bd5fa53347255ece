/* SPDX-License-Identifier: MIT
 *
 * What a sweep shows: the table on standard output as groups finish, and the progress line on
 * standard error. Formats for programs (csv, jsonl) print rows of one
 * table. */
#pragma once

#include "console_labels.h"
#include "harness/util/progress.h"
#include "result.h"

struct console {
    const struct options *opt;
    enum format format; /* never AUTO */
    struct selection columns;
    struct case_labels labels;
    int widen;                 /* columns that the variant has beyond its usual ones */
    struct bench_case heading; /* the case that the last heading was for */
    int width;                 /* of standard output when it was printed, INT_MAX = no terminal */
    int fitting;               /* the columns of the table that fit into it */
    bool hidden_told;          /* whether hidden columns were named */
    bool color;                /* standard output may have colours */
    bool told_by_rows;         /* rows go where progress goes: they tell it */
    bool started;
    int cases, done;           /* planned, finished */
    double expected_s;         /* of the whole run; 0 = unknown */
    double expected_done_s;    /* of its finished cases */
    double start_s, row_s;     /* when the run began, when its last case ended */
    double last_told_s;        /* when the progress line was last written */
    struct progress_line wait; /* what the run waits for, and the line on standard error */
    int out_error;             /* errno of the first write to standard output that failed */
};

/* `t` is the table whose rows are printed for programs: --columns selects from it. */
enum status console_open(struct console *s, const struct options *opt, const struct table *t,
                         int cases, struct err *e);

/* The cases that rows will be of: their labels and the table's columns fit them. */
void console_plan(struct console *s, const struct bench_case *cases, int n);

/* Is the output of this format one document, which is printed at the end of the run? */
bool console_at_end(enum format format);

/* After the last row of a table, what ends it. */
void console_end(struct console *s);

/* Is it Markdown or LaTeX for people? That names the machine and ends with the verdicts. */
bool console_is_to_paste(const struct console *s);

/* Print a finished case's row. */
void console_row(struct console *s, const struct result *r, const struct latency_row *row);

/* Between rows: the progress of the case. */
void console_progress(struct console *s, const struct result *r);

/* A case that was expected to take so long has ended. */
void console_spent(struct console *s, double expected_s);

/* Clear the progress line, flush standard output, and note any error. */
void console_flush(struct console *s);

/* One line on standard error, after clearing the progress line. */
void console_note(struct console *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
