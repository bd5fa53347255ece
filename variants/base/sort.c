/* SPDX-License-Identifier: MIT */
#include "sort.h"

int by_largest(const void *a, const void *b)
{
    const struct sort_key *const x = a, *const y = b;

    return x->value != y->value ? (x->value < y->value) - (x->value > y->value)
                                : (x->at > y->at) - (x->at < y->at);
}

static int ascending_nan_last(const void *pa, const void *pb)
{
    const double a = *(const double *)pa, b = *(const double *)pb;

    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return (a > b) - (a < b);
}

void sort_numbers(double *x, ptrdiff_t n)
{
    if (n > 1)
        qsort(x, (size_t)n, sizeof(*x), ascending_nan_last);
}
