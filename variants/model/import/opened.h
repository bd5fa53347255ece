/* SPDX-License-Identifier: MIT
 *
 * A published model that is open, for the files that look at its tensors. */
#pragma once

#include "gguf_names.h"
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
    struct gguf_form form;   /* of a GGUF file */
    struct adapter *adapter; /* added to what is read; NULL = none */
};

/* A tensor of ours, or some rows of one, that one published tensor holds. */
struct piece {
    struct param w;
    const struct tensor_row *row;
    int layer, expert, of;  /* of so many pieces */
    char name[TENSOR_NAME]; /* published */
};
/* The nth of w. */
struct piece piece_of(const struct published *p, const struct param *w, int nth);

/* One tensor of ours, as published_load reads all. */
enum status published_load_one(const struct published *p, struct param *w, struct err *e);

/* ---- tied tensors (ties.c) -----------------------------------------------------------------
 *
 * Of those that a file holds twice versions of the publisher's program read one or the other, so both must
 * hold the same numbers. */

/* Is this tensor tied to another in this model? Then *first is the other; NULL: files lack it. */
bool ties_find(const struct shard_tensor **first, const struct published *p, const char *name);

/* E_IO naming both: they have other shapes, or a type that is not read. */
enum status ties_check_shape(const struct published *p, const struct tensor *t,
                             const struct shard_tensor *first, struct err *e);

/* E_IO naming both: of all that is tied, one holds other numbers. Reads them. */
enum status ties_check_numbers(const struct published *p, struct err *e);

/* ---- a norm behind the embedding (word_norm.c) ---------------------------------------------
 *
 * It is the same for each word wherever it stands, so the rows of our embedding are computed with it, once.
 * Both do nothing for rows without such a norm. */

/* E_IO where its tensors are missing, of another shape or type; they are then used. `w` is the embedding,
 * [words,width]. */
enum status word_norm_check(const struct published *p, const struct tensor_row *row,
                            const struct param *w, struct err *e);
/* In place. E_IO where a word has no finite row any more. */
enum status word_norm_apply(const struct published *p, const struct tensor_row *row,
                            const struct param *w, struct err *e);
