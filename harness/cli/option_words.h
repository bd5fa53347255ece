/* SPDX-License-Identifier: MIT
 *
 * The words of a command line, with @files replaced by the words that they hold. */
#ifndef OPTION_WORDS_H
#define OPTION_WORDS_H

#include "options.h"

struct word {
    char *text;       /* kept by the options */
    const char *file; /* NULL: the command line */
    int line, depth;  /* of nested files; 0 = the command line */
};
struct words {
    struct word *v;
    int n, cap;
};

/* Append the words of `text`: separated by blanks, "..." or '...' around blanks, # to the end of
 * the line is a comment. E_USAGE for a quote that does not end. */
enum status words_split(struct words *w, struct options *o, const char *text, const char *file,
                        int depth, struct err *e);

/* Append one word as it is. */
enum status words_add(struct words *w, struct options *o, const char *text, struct err *e);

/* Replace each word @FILE by the words of that file, which may name others. E_IO with the reason,
 * E_USAGE for files that nest too deep. */
enum status words_expand(struct words *w, struct options *o, struct err *e);

/* Put "FILE line N: " in front of the message where the word came from a file. */
void words_locate(const struct word *w, struct err *e);

void words_free(struct words *w);

#endif
