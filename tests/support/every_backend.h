/* SPDX-License-Identifier: MIT
 *
 * Parameters of a test that runs once for each registered backend: its index in backends[]. */
#ifndef EVERY_BACKEND_H
#define EVERY_BACKEND_H

#include "variants/backends/backend.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

static inline struct criterion_test_params every_backend(void)
{
    static int which[32];
    size_t n = 0;

    for (; backends[n] && n < ARRAY_LEN(which); n++)
        which[n] = (int)n;
    return cr_make_param_array(int, which, n);
}

#endif
