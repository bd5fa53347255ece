/* SPDX-License-Identifier: MIT
 *
 * The tokens of a vocabulary: their texts by id, and ids by text. */
#pragma once

#include "variants/base/base.h"

enum { MAX_TOKENS = 1 << 22 };

struct token {
    char *text; /* NULL: no token has this id */
    size_t n;
    bool apart; /* it is not found by its text */
    bool made;  /* by a merge */
};

struct vocab {
    struct token *token;
    int n, room; /* ids are below n */
    int32_t *at; /* ids by the hash of their text; -1 = free */
    size_t slots;
};

/* Token `id` is the n bytes of `text`; `apart`: vocab_find does not know it. E_IO, without a name
 * in front, for an id out of bounds or taken by another text. */
enum status vocab_put(struct vocab *v, int64_t id, const char *text, size_t n, bool apart,
                      struct err *e);

/* Makes the table of those that there are. Of two with one text the lower id is found. */
enum status vocab_index(struct vocab *v, struct err *e);

/* -1: none. */
int32_t vocab_find(const struct vocab *v, const char *text, size_t n);

void vocab_free(struct vocab *v);
