/* SPDX-License-Identifier: MIT
 *
 * The weights of a published model, in one file or several: model.safetensors, or what
 * model.safetensors.index.json says. */
#pragma once

#include "variants/base/safetensors.h"

struct shard_tensor {
    const struct tensor *t;
    const struct safetensors *in;
    bool used;
};

struct shards {
    struct safetensors *files;
    int n_files;
    struct shard_tensor *tensors; /* in the order of their names */
    int n_tensors;
};

/* Those of a folder; with `file` only that one. `checkpoint` is what messages name. E_IO where
 * there are none, or they do not fit their index. */
enum status shards_open(struct shards *s, const char *checkpoint, const char *dir, const char *file,
                        struct err *e);
/* Those of n open files, which are closed and freed with them, or where there is an error. */
enum status shards_take(struct shards *s, struct safetensors *files, int n, const char *checkpoint,
                        struct err *e);
void shards_close(struct shards *s);

struct shard_tensor *shards_find(const struct shards *s, const char *name); /* NULL = none */

/* This tensor's pages, or with NULL those of a whole file, are not needed for now. */
void shards_drop(const struct safetensors *file, const struct tensor *t);
