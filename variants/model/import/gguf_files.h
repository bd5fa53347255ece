/* SPDX-License-Identifier: MIT
 *
 * The GGUF file of a model, or those that it was split into (llama-gguf-split): NAME-00001-of-00003.gguf
 * has the keys, and split.count says how many there are. */
#pragma once

#include "variants/base/safetensors.h"

#include <jansson.h>

struct gguf_files {
    struct safetensors *file;
    int n;
    json_t *keys; /* of the first */
};

/* `path` is the only file, or the first. E_IO naming the file, and what is wrong in it or missing. */
enum status gguf_files_open(struct gguf_files *g, const char *path, struct err *e);
/* What is left of them: file NULL = taken by another. */
void gguf_files_close(struct gguf_files *g);

/* A tensor of any of them; NULL if there is none. */
const struct tensor *gguf_files_find(const struct gguf_files *g, const char *name);
