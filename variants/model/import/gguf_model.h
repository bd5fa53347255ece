/* SPDX-License-Identifier: MIT
 *
 * A model in a GGUF file as the folder that it was made of. */
#pragma once

#include "gguf_names.h"
#include "shards.h"

#include <jansson.h>

/* Its tensors have the names of the folder's files, and *config is what config.json would say, to be
 * released. E_IO naming the file and what is wrong in it. */
enum status gguf_model_open(struct shards *s, json_t **config, struct gguf_form *form,
                            const char *path, struct err *e);
