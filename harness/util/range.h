/* SPDX-License-Identifier: MIT
 *
 * The grammar of numbers on the command line: lists a,b; ranges lo..hi (powers of two), lo..hi*k,
 * lo..hi+k, where hi belongs to the range if it is reached; suffixes k (1000), Ki (1024), M, Mi, before
 * which a number may have a point: 0.25Mi. */
#pragma once

#include "grow.h"
#include "suggest.h"

/* Values of a list, in the order given. */
struct names {
    const char **v;
    int n;
};
struct ints {
    int *v;
    int n;
};

bool names_have(const struct names *n, const char *word);

enum {
    VALUE_MAX = 1 << 28, /* tokens: twice this fits an int */
    VALUES_MAX = 4096,   /* per option */
};

/* Append the values of `text` to `out`, without duplicates. `label` is how the option was written
 * ("--seq", "BENCH_SEQ"); values lie in [lo, hi]. E_USAGE says what to write; `out` then holds the
 * values before the error and must still be freed. */
enum status range_parse(struct ints *out, const char *label, const char *text, int lo, int hi,
                        struct err *e);

/* The same where words (NULL-terminated) may stand among the numbers; the i-th is -1 - i. */
enum status range_parse_words(struct ints *out, const char *label, const char *text,
                              const char *const *words, int lo, int hi, struct err *e);

/* One number, with the same suffixes and bounds. */
enum status number_parse(int *out, const char *label, const char *text, int lo, int hi,
                         struct err *e);

/* A finite decimal number in [lo, hi]; `open` ends are left out. */
enum { OPEN_LOW = 1, OPEN_HIGH = 2 };
enum status decimal_parse(double *out, const char *label, const char *text, double lo, double hi,
                          int open, struct err *e);
