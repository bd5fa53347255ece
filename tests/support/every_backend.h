/* SPDX-License-Identifier: MIT
 *
 * Parameters of a test that runs once for each registered backend: its index in backends[]. Those
 * that only add an element type stand for what they inherit in tests of floats, hence only the
 * tests of narrower types have them. */
#ifndef EVERY_BACKEND_H
#define EVERY_BACKEND_H

#include "variants/backends/backend.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

static inline struct criterion_test_params backends_of(bool narrow)
{
    static int which[32];
    size_t n = 0;

    for (int i = 0; backends[i] && n < ARRAY_LEN(which); i++)
        if (narrow || backends[i]->adds == ELEM_F32)
            which[n++] = i;
    return cr_make_param_array(int, which, n);
}

static inline struct criterion_test_params every_backend(void) { return backends_of(false); }
static inline struct criterion_test_params every_narrow_backend(void) { return backends_of(true); }

#endif
