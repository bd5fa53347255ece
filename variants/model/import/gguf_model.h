/* SPDX-License-Identifier: MIT
 *
 * A model in a GGUF file as the folder that it was made of. */
#ifndef GGUF_MODEL_H
#define GGUF_MODEL_H

#include "shards.h"

#include <jansson.h>

/* How the file's numbers lie otherwise than the folder's. */
struct gguf_form {
    bool adjacent; /* rows of queries and keys stand so that neighbours are rotated together */
    bool upright;  /* maps are not transposed where the folder's are */
    bool computed; /* numbers are as they are computed with (struct tensor_row) */
};

/* Its tensors have the names of the folder's files, and *config is what config.json would say, to be
 * released. E_IO naming the file and what is wrong in it. */
enum status gguf_model_open(struct shards *s, json_t **config, struct gguf_form *form,
                            const char *path, struct err *e);

#endif
