/* SPDX-License-Identifier: MIT
 *
 * Error handling and small helpers for every file.
 *
 * External errors (bad input, no memory, a full disk) are returned as an `enum status` with one
 * line in `struct err`. Internal errors abort in CHECK, and NEED ends the program. Nothing below
 * main prints or exits otherwise. */
#pragma once

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status {
    OK = 0,
    E_USAGE,       /* an option or value makes no sense           exit 2 */
    E_UNSUPPORTED, /* meaningful, but not available in this build or machine     exit 6 */
    E_NOMEM, /* memory                                                     the row is skipped */
    E_IO,    /* cannot read or write a file, or its content is invalid   exit 7 */
    E_WRONG, /* numbers differ from the reference                          exit 5 */
    E_CHILD, /* a measuring process died or broke the protocol               exit 1 */
    E_INTERRUPTED, /* SIGINT or SIGTERM                                          exit 130, 143 */
    E_TIMEOUT,     /* a child did not answer in time                             exit 1 */
};

/* One line: what was attempted and with which value, then "  -> " and what to do about it. */
struct err {
    char msg[640];
};

/* Format the message into `e` (which may be NULL) and return `st`. Control characters and bytes
 * that are not UTF-8 are written as escapes: names and strings of files are printed and sent as one
 * line.
 */
enum status fail(struct err *e, enum status st, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Return the status of a call that failed. What must be released is released by the caller of the
 * function that uses it, or behind a label. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        const enum status try_status = (call);                                                     \
        if (try_status != OK)                                                                      \
            return try_status;                                                                     \
    } while (0)

/* vsnprintf to `buf` of the arguments that a function takes behind its parameter `fmt`. */
#define VPRINT(buf, size, fmt)                                                                     \
    do {                                                                                           \
        va_list behind;                                                                            \
        va_start(behind, fmt);                                                                     \
        vsnprintf(buf, size, fmt, behind);                                                         \
        va_end(behind);                                                                            \
    } while (0)

/* Append to the text in buf, which has `size` bytes and stays terminated: what does not fit is left
 * out. */
void text_append(char *buf, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Likewise an item of a list that commas join; all of it must fit. */
void text_item(char *buf, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

bool text_begins(const char *text, const char *with);
bool text_ends(const char *text, const char *end); /* is `end` what it ends in? */
const char *path_name(const char *path);           /* what is behind its last slash */

/* Index of a word in a NULL-terminated list, -1 if absent. */
int word_index(const char *word, const char *const *words);

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Abort on an internal error, in every build: correct results are worth more than the
 * microsecond. */
#define CHECK(cond) ((cond) ? (void)0 : check_failed(#cond, __FILE__, __LINE__))
_Noreturn void check_failed(const char *cond, const char *file, int line);

/* Memory for something small: without it the program ends, with a message and exit code 1. What was
 * written stays. Where the size is that of a model, a text or a file, the status is E_NOMEM. */
#define NEED(memory) ((memory) ? (void)0 : end_without_memory())
_Noreturn void end_without_memory(void);

/* Such memory for free(): n zeroed elements of `size` bytes, and a formatted text. */
void *need_room(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
char *need_text(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), malloc, returns_nonnull));

static inline int min_int(int a, int b) { return a < b ? a : b; }
static inline int max_int(int a, int b) { return a > b ? a : b; }
static inline int64_t min_wide(int64_t x, int64_t y) { return x < y ? x : y; }
static inline int64_t max_wide(int64_t x, int64_t y) { return x > y ? x : y; }
static inline int clamp_int(int x, int lo, int hi) { return x < lo ? lo : x > hi ? hi : x; }
static inline size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

/* The bits of a float, and the float that has these. */
static inline uint32_t bits_of_float(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}
static inline float float_of_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}
