/* SPDX-License-Identifier: MIT
 *
 * Tests that run once for each of some parameters, each in a process of its own. */
#pragma once

#include "variants/base/base.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

/* The head of a test of each parameter in `all`; options follow. */
#define TEST_EACH(param, suite, test, all, ...)                                                    \
    ParameterizedTestParameters(suite, test) { return all; }                                       \
    ParameterizedTest(param, suite, test, ##__VA_ARGS__)

/* The rows of an array. */
#define EVERY(rows) cr_make_param_array(__typeof__((rows)[0]), rows, ARRAY_LEN(rows))

enum { MOST_PARAMS = 64 };

/* 0 to n - 1. */
static inline struct criterion_test_params every_number(size_t n)
{
    static int all[MOST_PARAMS];

    cr_assert_leq(n, (size_t)MOST_PARAMS);
    for (size_t i = 0; i < n; i++)
        all[i] = (int)i;
    return cr_make_param_array(int, all, n);
}
