/* SPDX-License-Identifier: MIT
 *
 * The text protocol between the parent and a measuring child: lines over a socket, answered in
 * order. Version 1:
 *
 *   parent                child
 *                         hello bench-cell/1
 *   open REPRO            report                     pinned, engine open, arena counted
 *   score OPTIONS         report                     instead of open: a text was scored
 *   place                 report                     placed, filled, checked
 *   block CALLS PRIME     sample WALL CPU SWITCHES
 *   close                 report                     peak memory known
 *
 * A report is lines "name value" closed by "end". Instead of any answer: "fail STATUS message". */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include "worker.h"

#define TALK_HELLO "hello bench-cell/1"
enum { TALK_LINE = 16384 }; /* two paths and the options around them */

struct protocol {
    int fd;
    double patience_s;        /* longest silence of the other side; 0 = for ever */
    const volatile int *stop; /* an interruption ends a wait; NULL: nothing does */
    char buf[TALK_LINE];
    size_t n;
};

/* One line without its newline into `line` [TALK_LINE]. E_CHILD "ended" at end of file, "is silent"
 * after `patience_s`. */
enum status protocol_read(struct protocol *t, char *line, struct err *e);
enum status protocol_write(struct protocol *t, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

enum status protocol_write_report(struct protocol *t, const struct report *r, struct err *e);
enum status protocol_read_report(struct protocol *t, struct report *r, struct err *e);

/* If `line` is "fail ...": the status and message it carries, else OK. */
enum status protocol_failure(const char *line, struct err *e);

/* The child's side: greet, obey until "close", return the exit code. `cell` is NULL after exec: it
 * is rebuilt from its repro line. */
int worker_loop(struct protocol *t, const struct bench_case *bcase, enum role role, int reference);

#endif
