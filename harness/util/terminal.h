/* SPDX-License-Identifier: MIT
 *
 * The terminal: how wide it is, how wide a text is on it, and the one line of progress that is
 * rewritten in place. */
#ifndef TERMINAL_H
#define TERMINAL_H

#include "harness/cli/options.h"

/* Columns of the terminal `fd`, as wide as it is now: what it says itself, else $COLUMNS, else 80.
 * INT_MAX where `fd` is no terminal: nothing wraps there. */
int screen_width(int fd);

/* Columns that UTF-8 text takes: its code points. Wide and combining characters are in no name. */
int screen_columns(const char *text);

/* Cut the text to so many columns, never inside a character; ".." stands for what is missing. */
void screen_cut(char *text, int columns);

/* May this stream have colours? --color decides, which NO_COLOR and TERM=dumb have set already. */
bool screen_color(const struct options *o, int fd);

/* How progress is told: never PROGRESS_AUTO. A line is rewritten only on a terminal that can, and
 * not in CI, whose logs keep everything. */
enum progress screen_progress(const struct options *o);

/* A line on standard error that is rewritten in place. */
struct screen_line {
    bool shown;
};
void screen_line_put(struct screen_line *l, char *text); /* `text` is cut to fit */
void screen_line_clear(struct screen_line *l);           /* before anything else is printed */

#endif
