/* SPDX-License-Identifier: MIT
 *
 * What a person sees of a sweep: the table on standard output as groups finish, the progress line
 * on standard error, and the last lines that say what was fastest. Formats for programs (csv,
 * jsonl, md) print rows of one table. */
#ifndef CONSOLE_H
#define CONSOLE_H

#include "harness/util/terminal.h"
#include "result.h"

struct console {
    const struct options *opt;
    enum format format; /* never AUTO */
    enum progress progress;
    struct selection columns;
    struct bench_case heading; /* what the last heading said */
    int width;                 /* of standard output when it was printed, INT_MAX = no terminal */
    int fitting;               /* the columns of the table that fit into it */
    bool hidden_told;          /* which columns do not */
    bool color;                /* standard output may have them */
    bool started;
    int cases, done;           /* planned, finished */
    double start_s;            /* when the first cell began */
    double last_told_s;        /* when the progress line was last written */
    struct terminal_line line; /* on standard error */
    int out_error;             /* errno of the first write to standard output that failed */
};

/* `t` is the table whose rows programs get: --columns selects from it. */
enum status console_open(struct console *s, const struct options *opt, const struct table *t,
                         int cases, struct err *e);

/* A finished cell's row. */
void console_row(struct console *s, const struct result *r, const struct latency_row *row);

/* Between rows: how far the cell is. */
void console_progress(struct console *s, const struct result *r);

/* Clear the live line, send on what was printed to standard output, and note whether that went
 * well. */
void console_flush(struct console *s);

/* One line on standard error, in front of which the live line is cleared. */
void console_note(struct console *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Ratios of backends over the shapes that both ran, per variant, with 95 % intervals. */
struct seen { /* what the last lines are made of */
    const struct bench_case *bcase;
    double median_ns, ci_low_ns, ci_high_ns;
};
void console_fastest(struct console *s, const struct seen *seen, int n);

#endif
