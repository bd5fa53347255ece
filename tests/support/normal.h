/* SPDX-License-Identifier: MIT
 *
 * Standard normal numbers, by Box and Muller. */
#pragma once

#include "variants/base/rng.h"

#include <math.h>

/* The next numbers of a stream. */
struct synthetic {
    uint64_t seed, stream, n;
};

static inline double normal(struct synthetic *s)
{
    const double u = rng_uniform(s->seed, s->stream, s->n++),
                 v = rng_uniform(s->seed, s->stream, s->n++);

    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* The i-th of a stream. */
static inline double normal_at(uint64_t stream, uint64_t i)
{
    const double u = (rng_u32(7, stream, 2 * i) + 0.5) / 4294967296.0;
    const double v = (rng_u32(7, stream, 2 * i + 1) + 0.5) / 4294967296.0;

    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}
