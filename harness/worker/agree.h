/* SPDX-License-Identifier: MIT
 *
 * Do numbers agree with a reference? The one rule for outputs, gradients and golden tensors: the
 * largest error against the largest magnitude, and the normalised mean square error. */
#pragma once

#include "variants/base/base.h"

struct bound {
    double rel;   /* of max|got - want| / max(max|want|, floor) */
    double nmse;  /* of sum (got - want)^2 / sum want^2; INFINITY = no bound */
    double floor; /* magnitudes below count as 0 */
    double abs;   /* error that always passes */
};

struct agreement {
    double max_abs, max_rel, nmse; /* NaN if a value is not a number */
    double limit;                  /* of max_abs */
    size_t at;                     /* index of the largest error */
    char where[96];                /* the same in words, if the caller knows them */
    bool within;                   /* the bound holds */
};

struct agreement agree(const float *got, const float *want, size_t n, struct bound bound);

/* The rule itself, for numbers computed elsewhere. False for NaN. */
bool within_bound(double max_rel, double nmse, struct bound bound);

/* Which rows of a case's output are compared: all, or a sample that the seed determines, so that
 * every child of a problem knows it. `each` of the L rows of every sequence: one at random in each `each`-th part of it, but the first
 * of the first part and the last of the last. */
struct checked_rows {
    int B, L, each;
    uint64_t seed;
};

static inline bool checked_rows_are_all(const struct checked_rows *r) { return r->each == r->L; }

/* Row of sequence b that is compared as its k-th, k < each; they increase with k. */
int checked_row(const struct checked_rows *r, int b, int k);
