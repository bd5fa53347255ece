/* SPDX-License-Identifier: MIT
 *
 * Reading JSON with jansson, which reports want of memory as an error of syntax, or loses
 * characters of a string. */
#ifndef JSON_READ_H
#define JSON_READ_H

#include <jansson.h>

/* json_loadb; NULL with errno ENOMEM for want of memory, with errno 0 if the text is wrong. */
json_t *json_read(const char *text, size_t n, size_t flags, json_error_t *why);

#endif
