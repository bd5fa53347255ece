/* SPDX-License-Identifier: MIT
 *
 * For tests of kernels: buffers with guard words on both sides, reproducible random values, and the
 * one comparison that knows NaN and infinity. U = 2^-24 is half an ulp of 1: what one rounded
 * operation may be off by, relatively. */
#ifndef GUARDED_H
#define GUARDED_H

#include "variants/base/rng.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define U 0x1p-24
#define SMALLEST 0x1p-126 /* what underflow may cost */
enum { GUARD = 32, SEED = 20240817 };
#define GUARD_VALUE (-12345.678f)

static inline float *guarded(size_t n)
{
    float *p = malloc((n + 2 * GUARD) * sizeof(*p));

    cr_assert_not_null(p);
    for (size_t i = 0; i < n + 2 * GUARD; i++)
        p[i] = GUARD_VALUE;
    return p + GUARD;
}

static inline void release(float *p) { free(p - GUARD); }

static inline bool guards_intact(const float *p, size_t n)
{
    for (size_t i = 0; i < GUARD; i++)
        if (p[-1 - (ptrdiff_t)i] != GUARD_VALUE || p[n + i] != GUARD_VALUE)
            return false;
    return true;
}

static inline float *normal(size_t n, const char *name, float mean, float sd)
{
    float *p = guarded(n);

    rng_normal(p, n, SEED, rng_stream(name), mean, sd);
    return p;
}

/* Away from zero, as what is summed in a divisor has to be. */
static inline float *positive(size_t n, const char *name)
{
    float *p = normal(n, name, 0, 1);

    for (size_t i = 0; i < n; i++)
        p[i] = fabsf(p[i]) + 0.125f;
    return p;
}

/* |got - want| in units of the bound; a NaN must be met by a NaN, infinities exactly. */
static inline double in_bounds(double got, double want, double bound)
{
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0.0 : INFINITY;
    return got == want ? 0.0 : fabs(got - want) / (bound + SMALLEST);
}

#endif
