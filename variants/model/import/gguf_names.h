/* SPDX-License-Identifier: MIT
 *
 * Names of GGUF, of tensors and of keys, and those that the same things have in folders. */
#ifndef GGUF_NAMES_H
#define GGUF_NAMES_H

#include "gguf_model.h"

/* Patterns as of struct tensor_row; keys without the family's name in front. */
struct gguf_names {
    const char *gguf, *folder;
};

struct gguf_family {
    const char *name;
    const struct gguf_names *tensors, *keys; /* the last one has no name */
    struct gguf_form form;
    const char *const
        *vectors;      /* patterns of tensors that are vectors in the folder; NULL = none */
    const char *taps;  /* of those that have an axis of length 1 between their two there */
    bool has_bias_key; /* whether queries, keys and values have biases is a key of the folder's */
};

/* NULL where it is unknown. */
const struct gguf_family *gguf_family_find(const char *name);

#endif
