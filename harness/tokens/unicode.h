/* SPDX-License-Identifier: MIT
 *
 * Unicode for tokenizers: characters of UTF-8, classes of those beside added tokens, and canonical
 * composition. Classes and composition are libutf8proc's. */
#pragma once

#include "harness/util/fileio.h"

/* The character at the first of n > 0 bytes and its length; -1 if these are no UTF-8: then *length
 * is that of the longest part that begins no character, as the Unicode standard replaces it. */
int32_t utf8_next(const char *at, size_t n, size_t *length);

/* Where the first byte stands that is no UTF-8; n if there is none. */
size_t utf8_valid(const char *text, size_t n);

/* The text with U+FFFD for each part that is no UTF-8. */
enum status utf8_replace(struct bytes *out, const char *text, size_t n, struct err *e);

/* The 25 characters of White_Space; Python's \s has four separators besides. */
bool is_white(int32_t c);
bool is_white_or_separates(int32_t c);

/* \w of expressions: alphabetic characters, marks, decimal digits, connectors, joiners (Unicode
 * Technical Standard 18, annex C). */
bool is_word(int32_t c);

/* Canonical composition (NFC) of a text of UTF-8. */
enum status unicode_compose(struct bytes *out, const char *text, size_t n, struct err *e);
