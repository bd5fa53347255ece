/* SPDX-License-Identifier: MIT
 *
 * For tests of recurrent cells. */
#ifndef RNN_CASE_H
#define RNN_CASE_H

#include "variants/backends/backend.h"

#include <criterion/parameterized.h>
#include <math.h>

enum { GATES = 4 }; /* maximum of a cell */

static inline double logistic(double x) { return 1 / (1 + exp(-x)); }

static inline struct criterion_test_params every_backend(void)
{
    static int which[32];
    size_t n = 0;

    for (int i = 0; backends[i]; i++)
        which[n++] = i;
    return cr_make_param_array(int, which, n);
}

#endif
