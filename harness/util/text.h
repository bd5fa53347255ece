/* SPDX-License-Identifier: MIT
 *
 * Cleaning of texts from outside, so that they fit into a line of a table. */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Copy into dst[size]: control characters become spaces, so that the text is one line, and bytes
 * that are not UTF-8 become '?'. False if it had to be cut (never inside a character). */
bool text_put(char *dst, size_t size, const char *src);

#endif
