/* SPDX-License-Identifier: MIT
 *
 * How a text is cut into words before each of them becomes tokens: by the matches of a pattern, in the
 * syntax of the publisher's library (Oniguruma's, as of Ruby), run by PCRE2. */
#pragma once

#include "variants/base/base.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* Radford et al. 2019 */
#define WORDS_GPT2                                                                                 \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* Later ones, which differ in how they cut numbers, capitals and endings. */
#define WORDS_GPT4(numbers)                                                                        \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers                          \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define WORDS_BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define WORDS_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define WORDS_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define WORDS_GPT4O(ending, numbers)                                                               \
    WORDS_BEFORE WORDS_UPPER "*" WORDS_LOWER "+" ending "|" WORDS_BEFORE WORDS_UPPER               \
                             "+" WORDS_LOWER "*" ending "|" numbers                                \
                             "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define WORDS_LLAMA3 WORDS_GPT4("\\p{N}{1,3}")
#define WORDS_QWEN WORDS_GPT4("\\p{N}")
#define WORDS_GPT_4O WORDS_GPT4O("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "\\p{N}{1,3}")
#define WORDS_NEMO WORDS_GPT4O("", "\\p{N}")

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
