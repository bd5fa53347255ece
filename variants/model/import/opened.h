/* SPDX-License-Identifier: MIT
 *
 * A published model that is open, for the files that look at its tensors. */
#pragma once

#include "gguf/gguf_names.h"
#include "shards.h"
#include "variants/variant.h"

struct published {
    char *path;
    struct config config;
    const char *family; /* model_type */
    char source[256];   /* _name_or_path, or the folder's name */
    int context;        /* tokens of the longest window that it was made for */
    bool endless;       /* with its memory, texts of any length */
    struct shards shards;
    /* How its tensors are read. */
    const struct model_type *rows;
    const char *prefix,
        *outer; /* of tensors of the model; of those beside it, such as the output */
    bool part;  /* its texts' part of a model of other things, too */
    bool norms_words;
    struct gguf_form form; /* of a GGUF file */
};
