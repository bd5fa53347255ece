/* SPDX-License-Identifier: MIT
 *
 * How a text is cut into words before each of them becomes tokens: by the matches of a pattern, in the
 * syntax of the publisher's library (Oniguruma's, as of Ruby), run by PCRE2. */
#ifndef WORDS_H
#define WORDS_H

#include "variants/base/base.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* Radford et al. 2019 */
#define WORDS_GPT2                                                                                 \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* What becomes of matches and of what lies between them. */
enum split {
    SPLIT_ISOLATED, /* all are words */
    SPLIT_REMOVED,  /* matches go */
    SPLIT_MERGED_WITH_PREVIOUS,
    SPLIT_MERGED_WITH_NEXT,
    SPLIT_CONTIGUOUS, /* matches beside each other are one */
    SPLITS
};

/* Zeroes: a text is one word. */
struct words {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
    pcre2_compile_context *how;
    pcre2_jit_stack *stack;
    enum split split;
    bool invert; /* matches are what lies between them */
};

/* `literal`: a text in place of a pattern. E_IO for a pattern that is none, or that the two libraries
 * read in different ways: "\"...\": why". words_close whatever the status. */
enum status words_open(struct words *w, const char *pattern, bool literal, struct err *e);
void words_close(struct words *w);

struct word_scan {
    const struct words *words;
    const char *text; /* UTF-8, n bytes */
    size_t n, at;
    struct span {
        size_t from, to;
        enum span_kind { SPAN_BETWEEN, SPAN_MATCH, SPAN_END } kind;
    } found, ahead; /* the next match; the next piece */
};

enum status word_scan(struct word_scan *s, const struct words *w, const char *text, size_t n,
                      struct err *e);
/* The next word and its length; 0 at the end. E_IO if the pattern takes too many steps for it. */
enum status word_next(struct word_scan *s, const char **word, size_t *n, struct err *e);

#endif
