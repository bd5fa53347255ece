/* SPDX-License-Identifier: MIT
 *
 * A text to train or score on: a file as raw bytes (vocabulary 256), or a generated source. */
#pragma once

#include "synthetic.h"

struct corpus {
    char *name;           /* the file's name without its folder, or the source's text */
    const uint8_t *bytes; /* [n] */
    size_t n;
    char xxh3[17];    /* 16 hex digits: XXH3 of these n bytes */
    int vocab;        /* 256, or the symbols of the source */
    const char *unit; /* "byte" or "symbol" */
    struct synthetic synthetic;
    bool generated; /* by `synthetic` */
};

/* Scores of the tokens that a generated text calls answers; without any, NAN. */
struct answers {
    double nll, floor; /* mean nats */
    double blind;      /* of the true source without a past */
    double tokens;
};
/* Sums, from zeros, and their means. */
void answers_add(struct answers *a, double nll, double floor, double blind);
struct answers answers_mean(struct answers a);

/* Symbols of a generated text. 32768 are scored: the first few hundred, which have no earlier
 * symbol to copy from, then add about 1 % to the loss of a model that uses its memory. */
enum { SOURCE_TOKENS = 32769 };

/* Map the first `max_bytes` of a file, 0 = all of it; or generate that many symbols of a source's
 * split, 0 = SOURCE_TOKENS. E_IO for a file of less than two bytes: the first byte predicts the
 * second. E_USAGE if max_bytes is 1. */
enum status corpus_open(struct corpus *c, const char *path, enum split split, size_t max_bytes,
                        struct err *e);
void corpus_close(struct corpus *c);
