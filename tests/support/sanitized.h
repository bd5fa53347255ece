/* SPDX-License-Identifier: MIT
 *
 * Whether this is the sanitizers' build, which is tens of times slower in tight loops. It looks for
 * what code does wrong, whatever the numbers: tests that repeat the same code to judge numbers
 * repeat it less there. */
#pragma once

#include <criterion/criterion.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* Whether to run number i of a list whose members run mostly the same code: under sanitizers one of
 * `of`. */
static inline int sampled(size_t i, size_t of) { return !SANITIZED || i % of == 0; }

/* Skip the test there; the reason follows. */
#define SKIP_SANITIZED(...)                                                                        \
    do {                                                                                           \
        if (SANITIZED)                                                                             \
            cr_skip_test(__VA_ARGS__);                                                             \
    } while (0)
