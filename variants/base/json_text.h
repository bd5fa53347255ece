/* SPDX-License-Identifier: MIT
 *
 * JSON from text and to text, with jansson, which without memory loses characters and keys, calls
 * that an error of syntax or none at all, or stops the program. All its memory is ours: what makes
 * and changes values never wants any (NEED). */
#pragma once

#include <jansson.h>

/* json_loadb; NULL with errno ENOMEM for want of memory, with errno 0 if the text is wrong. */
json_t *json_read(const char *text, size_t n, size_t flags, json_error_t *why);

/* json_dumps: to be freed; NULL without memory. */
char *json_write(const json_t *json, size_t flags);
