/* SPDX-License-Identifier: MIT
 *
 * Values of tokenizer.json, and what its parts share. */
#ifndef TOKENIZER_JSON_H
#define TOKENIZER_JSON_H

#include "tokenizer_inner.h"

#include <jansson.h>

/* A text, "" where there is none. */
static inline const char *word_of(const json_t *j, const char *key)
{
    const char *const text = json_string_value(json_object_get(j, key));

    return text ? text : "";
}

static inline bool flag_of(const json_t *j, const char *key, bool absent)
{
    const json_t *const value = json_object_get(j, key);

    return value && !json_is_null(value) ? json_is_true(value) : absent;
}

enum status tokenizer_no_memory(const struct tokenizer *t, struct err *e);

/* Token `id` has the text that files write so. */
enum status tokenizer_put(struct tokenizer *t, const json_t *id, const char *text, size_t n,
                          struct err *e);

/* The vocabulary, an object of ids by text, and its smallest tokens. */
enum status tokenizer_read_vocab(struct tokenizer *t, json_t *vocab, struct err *e);
/* The model of tokenizer.json. */
enum status tokenizer_read_model(struct tokenizer *t, json_t *model, struct err *e);
/* merges.txt */
enum status tokenizer_read_merges(struct tokenizer *t, const struct bytes *text, struct err *e);

#endif
