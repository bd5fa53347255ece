/* SPDX-License-Identifier: MIT
 *
 * Which rows of a case's output are compared with the reference: all, or a sample that the seed
 * determines, so that every child of a problem knows it. */
#ifndef CHECKED_ROWS_H
#define CHECKED_ROWS_H

#include "variants/base/base.h"

/* `each` of the L rows of every sequence: one at random in each `each`-th part of it, but the first
 * of the first part and the last of the last. */
struct checked_rows {
    int B, L, each;
    uint64_t seed;
};

static inline bool checked_rows_are_all(const struct checked_rows *r) { return r->each == r->L; }

/* Row of sequence b that is compared as its k-th, k < each; they increase with k. */
int checked_row(const struct checked_rows *r, int b, int k);

#endif
