/* SPDX-License-Identifier: MIT
 *
 * How a text is cut into words before each of them becomes tokens. The patterns are those of
 * published tokenizers; words are all of the text, in order. */
#ifndef WORDS_H
#define WORDS_H

#include "variants/base/base.h"

enum words {
    WORDS_WHOLE,  /* the text is one word */
    WORDS_GPT2,   /* Radford et al. 2019 */
    WORDS_GPT4,   /* as in Llama 3: up to three digits */
    WORDS_QWEN,   /* the same with single digits */
    WORDS_GPT4O,  /* words end where an upper-case letter follows a lower-case one; as of gpt-oss */
    WORDS_TEKKEN, /* the same with single digits and without English endings; as of Mistral Nemo */
    WORDS_DIGIT,  /* each number alone, and what lies between */
    WORDS_DIGITS, /* runs of numbers, and what lies between */
    WORDS_MARKED, /* one begins at each mark */
};

/* Patterns as files spell them. False: none of these. NULL: it has none. */
bool words_of_pattern(const char *pattern, enum words *kind);
const char *words_pattern(enum words kind);

struct word_scan {
    enum words kind;
    const char *at, *end; /* UTF-8 */
    const char *mark;     /* of WORDS_MARKED */
};

/* The next word and its length; false at the end. */
bool word_next(struct word_scan *s, const char **word, size_t *n);

#endif
