/* SPDX-License-Identifier: MIT
 *
 * Texts of unknown origin as one line: of a table, or of a terminal. */
#pragma once

#include "variants/base/base.h"

/* Copy into dst[size]: control characters become spaces, so that the text is one line, and bytes
 * that are not UTF-8 become '?'. False if it had to be cut (never inside a character). */
bool text_put(char *dst, size_t size, const char *src);

/* Append a text that is not empty, after `with` where it is not the first. */
void text_join(char *buf, size_t size, const char *with, const char *text);

/* Is the word of n characters one of these, which have blanks between them? */
bool text_has_word(const char *words, const char *word, size_t n);

/* Print n bytes, with `to` in place of each `from`, which is not empty. */
void text_replaced(FILE *f, const char *text, size_t n, const char *from, const char *to);

/* The same as a text, to be freed. E_NOMEM. */
struct bytes;
enum status bytes_replace(struct bytes *out, const char *text, size_t n, const char *from,
                          const char *to, struct err *e);

/* A malloc'ed line of UTF-8 for each text, another one for every other text: the text itself, or
 * $'...' as bash reads it if it has control characters or bytes that are not UTF-8. */
char *text_exact(const char *src);

/* What stands for a part of a text in another format; a list ends with NULL. */
struct text_escape {
    const char *is, *as;
};
/* The one whose part begins there, or NULL. */
const struct text_escape *text_escape_at(const struct text_escape *escapes, const char *at);

/* Print a text with those in place of its parts. */
void text_print_escaped(FILE *f, const char *text, const struct text_escape *escapes);

/* Print $'...'. */
void text_print_quoted(FILE *f, const char *src);

/* Print one line and end it; on a terminal it breaks between words. Control characters and bytes
 * that are not UTF-8 are printed as escapes, so that a name or a string of a file cannot take hold
 * of the terminal. */
void text_line(FILE *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_vline(FILE *f, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* Print `text`, whose first column is `at`, and end the line. It breaks where the text does, and
 * between words that would pass `width`; further lines start at column `indent`. */
void text_fill(FILE *f, const char *text, int at, int indent, int width);

/* An empty line, then the text as a line. */
void text_heading(FILE *f, const char *text);

/* The text itself, without the end of the line. */
void text_print(FILE *f, const char *text);
