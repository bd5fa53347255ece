/* SPDX-License-Identifier: MIT
 *
 * Values of a tokenizer's JSON files, and what the readers of their parts share. */
#pragma once

#include "tokenizer_inner.h"

#include <jansson.h>

#define LOWER_BLOCK "\xe2\x96\x81" /* U+2581, which stands for a space */

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

/* What the value of a key may be. */
enum {
    MAY_TEXT = 1,
    MAY_FLAG = 2,
    MAY_NUMBER = 4,
    MAY_LIST = 8,
    MAY_OBJECT = 16,
    MAY_NULL = 32,
    MAY_ANY = 63, /* nothing that is computed depends on it */
};
struct key {
    const char *name;
    int may;
};

/* Is j an object of some of these keys and no others? E_IO naming what is not so; `what` is what
 * messages call the object. */
enum status tokenizer_keys(const struct tokenizer *t, const char *what, const json_t *j,
                           const struct key *keys, size_t n, struct err *e);

/* Read the parts of a sequence, which stand in its `list` and may be sequences, or the one thing that
 * there is in its place; of null none. */
typedef enum status read_part_fn(struct tokenizer *t, const json_t *part, struct err *e);
enum status tokenizer_parts(struct tokenizer *t, const char *what, const json_t *j,
                            const char *list, read_part_fn *read, struct err *e);

/* The object of a file; *out is the caller's, whatever the status. */
enum status tokenizer_object(const struct tokenizer *t, const char *name, json_t **out,
                             struct err *e);

/* What tokenizer.json would say of the tokenizer in a GGUF file; likewise. *scores: those of
 * tokenizer_read_scores, of a file that has them in place of merges; else NULL. t->begin becomes the
 * token that the file names for it. */
enum status tokenizer_gguf(struct tokenizer *t, json_t **all, json_t **scores, struct err *e);

enum status tokenizer_no_memory(const struct tokenizer *t, struct err *e);

/* Token `id` has the text that files write so. */
enum status tokenizer_put(struct tokenizer *t, const json_t *id, const char *text, size_t n,
                          struct err *e);
/* The token that has the text that files write so, added or not; -1 = none. */
int32_t tokenizer_named(const struct tokenizer *t, const char *text);

/* The vocabulary, an object of ids by text, and its smallest tokens. */
enum status tokenizer_read_vocab(struct tokenizer *t, json_t *vocab, struct err *e);
/* The model of tokenizer.json, with its own merges, or by scores. */
enum status tokenizer_read_model(struct tokenizer *t, json_t *model, const json_t *scores,
                                 struct err *e);
/* Merges by the scores of tokens, a list by id: a number; null of a token that no merge makes; false
 * of one that is unused. */
enum status tokenizer_read_scores(struct tokenizer *t, const json_t *scores, struct err *e);
/* merges.txt */
enum status tokenizer_read_merges(struct tokenizer *t, const struct bytes *text, struct err *e);

/* A pre_tokenizer and a post_processor. */
read_part_fn tokenizer_read_cutter, tokenizer_read_processor;
/* Is it a decoder whose rule tokenizer_decode has? *strips: it drops one space in front. */
bool tokenizer_decodes(const struct tokenizer *t, const json_t *decoder, bool *strips);
