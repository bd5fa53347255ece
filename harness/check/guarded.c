/* SPDX-License-Identifier: MIT
 *
 * Buffers with guard words, and the comparison of their contents. */
#include "guarded.h"

#include <math.h>
#include <stdlib.h>

float *guarded(size_t n)
{
    float *p = malloc((n + 2 * GUARD) * sizeof(*p));

    CHECK(p);
    for (size_t i = 0; i < n + 2 * GUARD; i++)
        p[i] = GUARD_VALUE;
    return p + GUARD;
}

void release(float *p) { free(p - GUARD); }

bool guards_intact(const float *p, size_t n)
{
    for (size_t i = 0; i < GUARD; i++)
        if (p[-1 - (ptrdiff_t)i] != GUARD_VALUE || p[n + i] != GUARD_VALUE)
            return false;
    return true;
}

float *normal(size_t n, const char *name, float mean, float sd)
{
    float *p = guarded(n);

    rng_normal(p, n, SEED, rng_stream(name), mean, sd);
    return p;
}

float *positive(size_t n, const char *name)
{
    float *p = normal(n, name, 0, 1);

    for (size_t i = 0; i < n; i++)
        p[i] = fabsf(p[i]) + 0.125f;
    return p;
}

void quantise(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = rintf(x[i] * 0x1p+13f) * 0x1p-13f;
}

double in_bounds(double got, double want, double bound)
{
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0.0 : INFINITY;
    return got == want ? 0.0 : fabs(got - want) / (bound + SMALLEST);
}
