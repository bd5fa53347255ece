/* SPDX-License-Identifier: MIT
 *
 * Tokenizers, and what they make of texts, kept until the test ends. Functions that a test does not ask
 * for a status fail it. */
#pragma once

#include "failure.h"
#include "harness/tokens/tokenizer.h"

static inline struct tokenizer *must_open(const char *path)
{
    struct tokenizer *t;

    MUST(tokenizer_open(&t, path, &failure));
    return kept(t);
}

static inline struct ids encoded(struct tokenizer *t, const char *text)
{
    struct ids ids = {0};

    MUST(tokenizer_encode(t, text, strlen(text), &ids, &failure));
    kept(ids.v);
    return ids;
}

static inline struct bytes decoded(struct tokenizer *t, const int32_t *ids, size_t n)
{
    struct bytes b = {0};

    MUST(tokenizer_decode(t, ids, n, &b, &failure));
    kept(b.data);
    return b;
}

/* A file or a folder that is refused; the message has this part. */
static inline void expect_refused(const char *path, const char *part, const char *what)
{
    struct tokenizer *t = NULL;
    struct err e = {""};

    cr_expect_eq(tokenizer_open(&t, path, &e), E_IO, "%s is accepted", what);
    cr_expect_null(t);
    cr_expect_not_null(strstr(e.msg, part), "%s: %s", what, e.msg);
}
