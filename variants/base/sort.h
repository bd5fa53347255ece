/* SPDX-License-Identifier: MIT
 *
 * Orders of numbers that several parts sort by. */
#pragma once

#include "base.h"

/* A number, not NaN, and where it stands. For qsort: the largest first, of equal ones the first. */
struct sort_key {
    double value;
    ptrdiff_t at;
};
int by_largest(const void *a, const void *b);

/* Ascending, NaNs last: functions of sorted values detect a NaN by the last one. */
void sort_numbers(double *x, ptrdiff_t n);
