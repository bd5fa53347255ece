/* SPDX-License-Identifier: MIT
 *
 * Progress of long work: a line on standard error, from two seconds on. On a terminal it is
 * rewritten in place; in a log (--progress plain) it is repeated now and then. */
#pragma once

#include "terminal.h"

struct progress_line {
    enum progress how; /* never AUTO: see terminal_progress */
    struct terminal_line line;
    char text[320];
    double begun_s, told_s; /* on a clock of this file; 0 = nothing is going on */
    double expected_s;      /* of all of it; 0 = unknown */
    double share, before;   /* done, 0 to 1, 0 = unknown; and done before it began */
};

/* Something begins that takes about so long (0 = unknown). Replaces what went on before. */
void progress_begin(struct progress_line *p, double expected_s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* It is at this share; `fmt` (may be NULL) says anew what it does. Shows it if it is time. */
void progress_at(struct progress_line *p, double share, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Time passes. Shows the line if it is time. */
void progress_tick(struct progress_line *p);

/* It is over, or something else is to be printed. */
void progress_end(struct progress_line *p);

/* "12 s", "2 min 5 s", "1 h 3 min" */
struct duration_text {
    char s[32];
};
struct duration_text duration_text(double seconds);
