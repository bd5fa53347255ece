/* SPDX-License-Identifier: MIT
 *
 * For tests of the library: an engine that is kept until the test ends, and what a call has to answer. */
#pragma once

#include "tests/support/kept.h"
#include "variants/backends/library/benchattn.h"

#include <criterion/criterion.h>

static inline struct ba_engine *library_engine(const char *backend, int threads)
{
    const struct ba_engine_options o = {.size = sizeof(o), .backend = backend, .threads = threads};
    struct ba_engine *engine;
    char why[256];

    cr_assert_eq(ba_engine_open(&engine, &o, why, sizeof(why)), BA_OK, "%s", why);
    return kept(engine);
}

/* OK says nothing; a refusal is one line in two parts. */
static inline void expect_status(int got, int want, const char *why, const char *what)
{
    cr_expect_eq(got, want, "%s: %d (%s), not %d", what, got, why, want);
    if (got == BA_OK)
        cr_expect_str_eq(why, "", "%s", what);
    else
        cr_expect(strstr(why, "  -> ") && !strchr(why, '\n'), "%s: %s", what, why);
}

/* What a call of the library, without its last two arguments, has to answer. */
#define ANSWERS(want, what, function, ...)                                                         \
    do {                                                                                           \
        char why[256] = "?";                                                                       \
        const int answer = function(__VA_ARGS__, why, sizeof(why));                                \
        expect_status(answer, want, why, what);                                                    \
    } while (0)
