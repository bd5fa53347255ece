/* SPDX-License-Identifier: MIT
 *
 * The GGUF format, versions 2 and 3, little endian: a header of keys and values, the list of tensors,
 * their numbers, each tensor aligned. Its tensors become those of a safetensors file, its
 * keys a JSON object; the names stay. */
#pragma once

#include "safetensors.h"

#include <jansson.h>

/* Does the file begin as one? */
bool gguf_is(const char *path);

/* Map and check a file; *keys is released by the caller. Texts, numbers and flags are values of
 * *keys; arrays are lists. E_IO with a message that names the file and what is wrong in it. */
enum status gguf_open(struct safetensors *s, json_t **keys, const char *path, struct err *e);

/* Write the keys of an open file and its tensors, in the same order and of the same shapes: as they
 * are there, or F32 with numbers of their own, their bytes known. With half_write: 0 or an errno. */
int gguf_write(const char *path, const struct safetensors *like, const struct tensor *tensors);
