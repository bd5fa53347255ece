/* SPDX-License-Identifier: MIT
 *
 * Parameters of a test that runs once for each registered backend: its index in backends[]. Those
 * that only add an element type stand for what they inherit in tests of floats, hence only the
 * tests of narrower types have them. */
#pragma once

#include "each.h"
#include "variants/backends/backend.h"

static inline struct criterion_test_params backends_of(bool narrow, bool reference)
{
    static int which[MOST_PARAMS];
    size_t n = 0;

    for (int i = 0; backends[i]; i++)
        if ((narrow || backends[i]->adds == ELEM_F32) && (reference || backends[i] != &backend_ref))
            which[n++] = i;
    return cr_make_param_array(int, which, n);
}

static inline struct criterion_test_params every_backend(void) { return backends_of(false, true); }
static inline struct criterion_test_params every_narrow_backend(void)
{
    return backends_of(true, true);
}
static inline struct criterion_test_params all_but_ref(void) { return backends_of(false, false); }
