/* SPDX-License-Identifier: MIT
 *
 * How far two correct matrix products may be apart. */
#ifndef PRODUCT_H
#define PRODUCT_H

#include "guarded.h"

#include "variants/backends/backend.h"

/* A sum of k products in any order is off by k U sum |a||b|; alpha, beta and their sum add 3 U. The
 * reference's store adds one more. */
static inline double product_bound(const struct gemm *g, double old, int i, int j)
{
    double sum = 0;

    for (int p = 0; p < g->k; p++)
        sum += fabs((double)g->a[g->ta ? p * g->lda + i : i * g->lda + p]) *
               fabs((double)g->b[g->tb ? j * g->ldb + p : p * g->ldb + j]);
    return U * ((g->k + 4) * fabs((double)g->alpha) * sum + 4 * fabs((double)g->beta * old));
}

#endif
