/* SPDX-License-Identifier: MIT
 *
 * "did you mean": the nearest word of a list, and the error text for a word that is not in it. */
#pragma once

#include "variants/base/base.h"

/* The candidate with the smallest edit distance (insert, delete, replace, swap of neighbours), or
 * NULL if none is near enough. `words` is NULL-terminated. */
const char *nearest(const char *word, const char *const *words);

/* E_USAGE: unknown WHAT "word"  -> did you mean xl?  (see: bench list variants).
 * `see` may be NULL. */
enum status unknown_word(struct err *e, const char *what, const char *word,
                         const char *const *words, const char *see);
