/* SPDX-License-Identifier: MIT
 *
 * Finite differences: is `grad` the gradient of a number with respect to x? Along random directions
 * v with entries -1, 0, 1 the central differences D(h) and D(2h) are extrapolated to (4 D(h) -
 * D(2h)) / 3, which cancels the error of second order; what D(h) itself had wrong, |D(h) - D(2h)| /
 * 3, bounds what is left. The values carry `noise` each, which h magnifies to 1.5 noise / h; grad's
 * own rounding, which is that of a float program, is RELATIVE of its length. The test has teeth
 * only while the sum of these is far below the gradient's length, so that is asserted as well: a
 * term that is missing, doubled or of the wrong sign then shows in some direction. x must be
 * quantised: then x +- 2h v is exact. */
#ifndef FINITE_H
#define FINITE_H

#include "guarded.h"

#include <math.h>

#define FINITE_STEP 0x1p-8
enum { DIRECTIONS = 3, DIRECTION_ENTRIES = 48 };

struct scalar {
    double (*at)(void *ctx);
    void *ctx;
    double noise; /* what one value may be off by */
    double step;  /* a power of two; 0 = FINITE_STEP */
};

static inline void quantise(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = rintf(x[i] * 0x1p+13f) * 0x1p-13f;
}

/* A direction: entry i of direction d. About DIRECTION_ENTRIES of n are not 0. */
static inline float direction(uint64_t stream, size_t n, int d, size_t i)
{
    const uint32_t bits = rng_u32(SEED + (uint64_t)d, stream, i);

    if (n > DIRECTION_ENTRIES && (bits >> 8) % n >= DIRECTION_ENTRIES)
        return 0;
    return bits & 1 ? 1 : -1;
}

static inline double difference(const struct scalar *f, float *x, size_t n, const float *v, float h)
{
    double value[2];

    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < n; i++)
            x[i] += (side ? -h : h) * v[i];
        value[side] = f->at(f->ctx);
        for (size_t i = 0; i < n; i++)
            x[i] -= (side ? -h : h) * v[i];
    }
    return (value[0] - value[1]) / (2 * (double)h);
}

/* `relative` is what grad may be off by, of its length; `absolute` where its true value may be 0.
 */
static inline void expect_gradient(const struct scalar *f, const char *what, float *x,
                                   const float *grad, size_t n, double relative, double absolute)
{
    const uint64_t stream = rng_stream(what);
    const double h = f->step != 0 ? f->step : FINITE_STEP;
    float *v = calloc(n, sizeof(*v));

    cr_assert_not_null(v);
    for (int d = 0; d < DIRECTIONS; d++) {
        double along = 0, length = 0;
        for (size_t i = 0; i < n; i++) {
            v[i] = direction(stream, n, d, i);
            along += (double)grad[i] * (double)v[i];
            length += v[i] != 0 ? (double)grad[i] * (double)grad[i] : 0;
        }
        length = sqrt(length);
        const double one = difference(f, x, n, v, (float)h);
        const double two = difference(f, x, n, v, (float)(2 * h));
        const double unsure = fabs(one - two) / 3 + 1.5 * f->noise / h;
        const double bound = unsure + relative * length + absolute;
        cr_expect(fabs(along - (4 * one - two) / 3) <= bound,
                  "%s, direction %d: gradient %.9g, differences %.9g, bound %.2g", what, d, along,
                  (4 * one - two) / 3, bound);
        cr_expect(unsure <= 0.1 * length + absolute,
                  "%s, direction %d: differences good to %.2g only, gradient %.2g", what, d, unsure,
                  length);
    }
    free(v);
}

#endif
