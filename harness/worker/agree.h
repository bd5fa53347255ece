/* SPDX-License-Identifier: MIT
 *
 * Do numbers agree with a reference? The one rule for outputs, gradients and golden tensors: the
 * largest error against the largest magnitude, and the normalised mean square error. */
#ifndef AGREE_H
#define AGREE_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
