/* SPDX-License-Identifier: MIT
 *
 * Names of GGUF, of tensors and of keys, and those that the same things have in folders. */
#pragma once

#include "variants/base/base.h"

/* How the file's numbers lie otherwise than the folder's. */
struct gguf_form {
    bool adjacent; /* rows of queries and keys stand so that neighbours are rotated together */
    bool upright;  /* maps are not transposed where the folder's are */
    bool computed; /* numbers are as they are computed with (struct tensor_row) */
};

/* Patterns as of struct tensor_row; keys without the family's name in front. */
struct gguf_names {
    const char *gguf, *folder;
};

struct gguf_family {
    const char *name;
    /* Those that differ from the usual ones; the last one has no name. NULL = none do. */
    const struct gguf_names *tensors, *keys;
    const char *type; /* the folder's model_type; NULL = name */
    struct gguf_form form;
    /* Patterns of tensors: vectors in the folder; with an axis of length 1 between their two there;
     * one row there, which may be a vector here. NULL = none. */
    const char *const *vectors;
    const char *taps, *row;
    /* The folder's key of whether queries, keys and values have biases; whether feed-forward networks
     * have. NULL = none. */
    const char *bias_key, *ff_bias_key;
    /* Where no key says so: gates of experts are divided by their sum; no layer has a window; yarn
     * is between fractions of pairs. */
    bool norms_gates, sees_all, fractions;
    bool one_width; /* experts are as wide as feed-forward networks */
    /* gemma: queries are divided by the root of the width of a head, but with so many layers by that
     * of the model's width over heads. 0 = none of it. */
    int divided_at;
};

/* As of llama, which most families take. */
extern const struct gguf_names gguf_usual_tensors[], gguf_usual_keys[];

/* NULL where it is unknown. */
const struct gguf_family *gguf_family_find(const char *name);
