/* SPDX-License-Identifier: MIT
 *
 * The error of a test's own calls, and what most tests ask of them: that they succeed, or are refused
 * with a status and a message. */
#pragma once

#include "compared.h"
#include "kept.h"

/* What the last call said that failed and was given its address. */
extern struct err failure;

/* A call that is given &failure, and without which the test cannot go on. */
#define MUST(call) cr_assert_eq(call, OK, "%s", failure.msg)

/* The first of the parts, up to NULL, that a text lacks; NULL if it has them all. */
static inline const char *first_lacking(const char *text, const char *const *part)
{
    while (*part && strstr(text, *part))
        part++;
    return *part;
}

/* A text has these parts. */
#define HAS(text, ...)                                                                             \
    do {                                                                                           \
        const char *const lacks = first_lacking(text, (const char *const[]){__VA_ARGS__, NULL});   \
        cr_expect(!lacks, "\"%s\" is not in: %s", lacks, text);                                    \
    } while (0)

/* A call that is given &failure is refused with this status, and says these parts. */
#define REFUSED(call, status, ...)                                                                 \
    do {                                                                                           \
        failure = (struct err){""};                                                                \
        cr_expect_eq(call, status, "%s", failure.msg);                                             \
        HAS(failure.msg, __VA_ARGS__);                                                             \
    } while (0)
