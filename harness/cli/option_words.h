/* SPDX-License-Identifier: MIT
 *
 * The words of a command line: printed on one line, read from one, and with @files replaced by the
 * words in them. Every line of words that the program writes and may read again is made here. */
#pragma once

#include "options.h"

struct word {
    char *text;       /* kept by the options */
    const char *file; /* NULL: the command line */
    int line, depth;  /* nesting of files; 0 = the command line */
};
struct words {
    struct word *v;
    int n;
};

/* Print a word so that words_split() and bash read it back, whatever its bytes: as it is, in "...",
 * '...' or $'...'. `quote`: the quotes that it gets even if it needs none; 0: only where it does.
 */
void word_print(FILE *f, const char *word, char quote);

/* Print an option and its value: " --corpus FILE". */
void word_print_option(FILE *f, const char *name, const char *value, char quote);

/* Append the words of `text`: separated by blanks, "..." or '...' around blanks, $'...' with
 * escapes such as \n and \x1b, a comment from # to the end of the line. E_USAGE for an open quote.
 */
enum status words_split(struct words *w, struct options *o, const char *text, const char *file,
                        int depth, struct err *e);

/* Append one word as it is. */
enum status words_add(struct words *w, struct options *o, const char *text, struct err *e);

/* Replace each word @FILE by the words of that file, which may name further files. E_IO with the
 * reason, E_USAGE if they nest too deep. */
enum status words_expand(struct words *w, struct options *o, struct err *e);

/* Prefix the message with "FILE line N: " if the word came from a file. */
void words_locate(const struct word *w, struct err *e);

void words_free(struct words *w);
