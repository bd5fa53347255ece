/* SPDX-License-Identifier: MIT
 *
 * What helpers hand out until a test's process ends: tests need not free it, and the leak check
 * finds it here. */
#pragma once

#include "harness/util/fileio.h"
#include "members.h"

/* Returns p, which free must take. */
void *kept(void *p);

/* Room for n things of this size, all zero. */
void *room(size_t n, size_t size);

/* A copy of a struct, so that what it points to is kept. */
void kept_copy(const void *p, size_t size);

/* A copy of n floats; a text. */
float *copied(const float *x, size_t n);
const char *kept_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The bytes of a file. */
struct bytes must_load(const char *path);

/* What is written to a stream between the two, one at a time. */
FILE *text_begin(void);
char *text_end(FILE *f);

/* What one call writes to the stream f. */
#define PRINTED(f, call)                                                                           \
    __extension__({                                                                                \
        FILE *const f = text_begin();                                                              \
        call;                                                                                      \
        text_end(f);                                                                               \
    })
