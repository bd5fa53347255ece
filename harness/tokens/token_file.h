/* SPDX-License-Identifier: MIT
 *
 * Files of ids that were made elsewhere: numpy's .npy, the .bin of llm.c, which both say what they
 * hold, and bare ids, little-endian, of which only an option can say it. */
#pragma once

#include "tokenizer.h"

/* Bare ids: AUTO is int32, unless they look like int64. */
enum id_type { ID_AUTO, ID_UINT16, ID_INT32, ID_UINT32, ID_INT64 };

/* Append the ids of a file, two or more. E_IO naming the file and, of an id that is none, its place
 * from 0; E_USAGE for a type of a file that says its own. */
enum status token_file_read(struct ids *out, const char *path, enum id_type type, struct err *e);

/* Could these ids, read as int32, be pairs of uint16 below the vocabulary? */
bool token_file_looks_uint16(const int32_t *ids, size_t n, int vocab);
