/* SPDX-License-Identifier: MIT
 *
 * For tests of products: c [m,n] = a [m,k] times weights [n,k], without gaps; which weights is left
 * to say. */
#pragma once

#include "tests/support/members.h"
#include "variants/backends/backend.h"

static inline struct gemm by_weights(const struct engine *g, int m, int n, int k, const float *a,
                                     float *c)
{
    return (struct gemm){.tb = true,
                         MEMBERS(, m, n, k, a, c),
                         .alpha = 1,
                         .lda = k,
                         .ldb = k,
                         .ldc = n,
                         .threads = g->threads,
                         .room = g->room};
}
