/* SPDX-License-Identifier: MIT
 *
 * The terminal: how wide it is, how wide a text is on it, and the one line of progress that is
 * rewritten in place. */
#pragma once

#include "text.h"

/* Values of --progress and --color. */
enum progress { PROGRESS_AUTO, PROGRESS_BAR, PROGRESS_PLAIN, PROGRESS_NONE };
enum color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* Width of the terminal `fd` in columns: what the terminal reports, else $COLUMNS, else 80. INT_MAX
 * if `fd` is no terminal: nothing wraps there. */
int terminal_width(int fd);

/* Columns that text takes as text_print() prints it: its number of code points, and of characters
 * of escapes. Names contain no wide or combining characters. */
int terminal_columns(const char *text);

/* Cut the text to that many columns, never inside a character; ".." stands for what is cut. */
void terminal_cut(char *text, int columns);

/* May this stream have colours? --color decides; NO_COLOR and TERM=dumb set its default. */
bool terminal_color(enum color when, int fd);

/* How to show progress: never PROGRESS_AUTO. A line is rewritten only on a terminal that can do it,
 * and not in CI, whose logs keep every line. */
enum progress terminal_progress(enum progress how, bool quiet);

/* Do standard output and standard error go to one file, pipe or terminal? */
bool terminal_is_one(void);

/* A line on standard error that is rewritten in place. */
struct terminal_line {
    bool shown;
};
void terminal_line_put(struct terminal_line *l, char *text); /* `text` is cut to fit */
void terminal_line_clear(struct terminal_line *l);           /* before anything else is printed */
void terminal_line_print(char *text); /* one that stays; also cut to fit a terminal */
