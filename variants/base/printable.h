/* SPDX-License-Identifier: MIT
 *
 * Bytes of unknown origin (names of files, strings in them) on one line of a terminal or a table:
 * which of them stand as they are, and how the others are written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the UTF-8 character at `s` if it stands as it is; 0 for a control character, a byte that
 * is not UTF-8 (no overlong forms, no surrogates), and the end. */
size_t printable_length(const char *s);

/* The others: "\n", "\t", "\x1b", as bash reads them in $'...'. */
enum { PRINTABLE_ESCAPE = 5 };
void printable_escape(char out[PRINTABLE_ESCAPE], char byte);

/* Copy into dst[size] with such bytes escaped. False if it had to be cut (never inside a character
 * or an escape). */
bool printable_copy(char *dst, size_t size, const char *src);
