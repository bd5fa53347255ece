/* SPDX-License-Identifier: MIT
 *
 * A text to train or score on, as raw bytes (vocabulary 256). */
#ifndef CORPUS_H
#define CORPUS_H

#include "../variants/base/base.h"

struct corpus {
    char *name;           /* the file's name without its folder */
    const uint8_t *bytes; /* [n] */
    size_t n;
    char xxh3[17]; /* 16 hex digits: XXH3 of these n bytes */
};

/* Map the first `max_bytes` of a file, 0 = all of it. E_IO for what is no file of two bytes or
 * more: the first byte predicts the second. E_USAGE where max_bytes is 1. */
enum status corpus_open(struct corpus *c, const char *path, size_t max_bytes, struct err *e);
void corpus_close(struct corpus *c);

#endif
