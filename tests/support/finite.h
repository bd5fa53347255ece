/* SPDX-License-Identifier: MIT
 *
 * Finite differences: is `grad` the gradient of a number with respect to x? Along random directions
 * v with entries -1, 0, 1 the central differences D(h) and D(2h) are extrapolated to (4 D(h) -
 * D(2h)) / 3, which cancels the error of second order; the error of D(h) itself, |D(h) - D(2h)| /
 * 3, bounds what is left. The values carry `noise` each, which h magnifies to 1.5 noise / h; grad's
 * own rounding, which is that of a float program, is RELATIVE of its length. The test is sensitive
 * only while the sum of these is far below the gradient's length, so that is asserted as well: a
 * term that is missing, doubled or of the wrong sign then shows in some direction. x must be
 * quantised: then x +- 2h v is exact. */
#pragma once

#include "harness/check/guarded.h"
#include "kept.h"
#include "sanitized.h"

#define FINITE_STEP 0x1p-8
/* The usual build judges the numbers; under sanitizers one direction runs all code. */
enum { DIRECTIONS = SANITIZED ? 1 : 3, DIRECTION_ENTRIES = 48, STEPS_ASIDE = 5 };

struct scalar {
    double (*at)(void *ctx);
    void *ctx;
    double noise; /* error of one value */
    double step;  /* a power of two; 0 = FINITE_STEP */
};

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

/* The extrapolated difference along v, its uncertainty, and |D(h) - D(2h)|. */
struct slope {
    double at, unsure, differ;
};

static inline struct slope slope_along(const struct scalar *f, float *x, size_t n, const float *v,
                                       double h)
{
    const double one = difference(f, x, n, v, (float)h);
    const double two = difference(f, x, n, v, (float)(2 * h));
    const double differ = fabs(one - two);

    return (struct slope){(4 * one - two) / 3, differ / 3 + 1.5 * f->noise / h, differ};
}

static inline double sum_of_sides(const struct scalar *f, float *x, size_t n, const float *v,
                                  float h)
{
    double sum = 0;

    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < n; i++)
            x[i] += (side ? -h : h) * v[i];
        sum += f->at(f->ctx);
        for (size_t i = 0; i < n; i++)
            x[i] -= (side ? -h : h) * v[i];
    }
    return sum;
}

/* Can a corner between -2h and 2h have put the slope off by this much? One at a, where the slope
 * changes by J, puts (1/2 - 7/12 |a|/h) J into it while |a| < h, (2 - |a|/h) J / 12 beyond. It
 * shows in |D(h) - D(2h)| as |a|/4h J or (2 - |a|/h) J / 4, and in the second differences: those of
 * 2h are four times those of h, up to the fourth order of h, but for |1/2 - 3/4 |a|/h| 4h J and
 * (2 - |a|/h) h J. The sum of the two, in units of J, is never less. */
static inline bool corner_within(const struct scalar *f, float *x, size_t n, const float *v,
                                 double h, const struct slope *s, double off)
{
    const double twice = 2 * f->at(f->ctx);
    const double one = sum_of_sides(f, x, n, v, (float)h) - twice;
    const double two = sum_of_sides(f, x, n, v, (float)(2 * h)) - twice;

    return s->differ + fabs(two - 4 * one) / (4 * h) >= off;
}

/* The claim: the gradient along v, the length of the part of it that v covers, and its tolerance,
 * relative to that length and absolute where its true value may be 0. */
struct claim {
    double along, length, relative, absolute;
};

static inline struct claim claim_along(const float *grad, size_t n, const float *v)
{
    struct claim c = {0};

    for (size_t i = 0; i < n; i++) {
        c.along += (double)grad[i] * (double)v[i];
        c.length += v[i] != 0 ? (double)grad[i] * (double)grad[i] : 0;
    }
    c.length = sqrt(c.length);
    return c;
}

static inline bool agrees(const struct slope *s, const struct claim *c)
{
    return fabs(c->along - s->at) <= s->unsure + c->relative * c->length + c->absolute;
}

/* The slope at the first of falling steps where it is certain enough to decide and agrees with the
 * claim, or else at the last where it can decide; false if none can, or if corners may explain the
 * difference at one that can. */
static inline bool smooth_slope(const struct scalar *f, float *x, size_t n, const float *v,
                                const struct claim *c, struct slope *found)
{
    double h = f->step != 0 ? f->step : FINITE_STEP;
    bool sure = false, corner = false;

    for (int k = 0; k < STEPS_ASIDE; k++, h /= 4) {
        const struct slope s = slope_along(f, x, n, v, h);
        /* a gradient that is wrongly 0 must not make every slope look uncertain */
        if (s.unsure > 0.1 * fmax(c->length, fabs(s.at)) + c->absolute)
            continue;
        *found = s;
        if (agrees(&s, c))
            return true;
        sure = true;
        corner = corner || corner_within(f, x, n, v, h, &s, fabs(c->along - s.at));
    }
    return sure && !corner;
}

static inline void expect_slope(const char *what, int d, const struct slope *s,
                                const struct claim *c)
{
    cr_expect(agrees(s, c), "%s, direction %d: gradient %.9g, differences %.9g, bound %.2g", what,
              d, c->along, s->at, s->unsure + c->relative * c->length + c->absolute);
}

/* `relative` is the tolerance of grad, of its length; `absolute` where its true value may be 0. */
static inline void expect_gradient(const struct scalar *f, const char *what, float *x,
                                   const float *grad, size_t n, double relative, double absolute)
{
    const uint64_t stream = rng_stream(what);
    float *v = room(n, sizeof(*v));

    for (int d = 0; d < DIRECTIONS; d++) {
        for (size_t i = 0; i < n; i++)
            v[i] = direction(stream, n, d, i);
        struct claim c = claim_along(grad, n, v);
        c.relative = relative, c.absolute = absolute;
        const struct slope s = slope_along(f, x, n, v, f->step != 0 ? f->step : FINITE_STEP);
        expect_slope(what, d, &s, &c);
        cr_expect(s.unsure <= 0.1 * c.length + absolute,
                  "%s, direction %d: differences good to %.2g only, gradient %.2g", what, d,
                  s.unsure, c.length);
    }
}

/* The same for a function with corners and jumps that cannot all be avoided, such as an argmax of
 * many. A direction in which one of them is near at every step decides nothing and is replaced by
 * another. False if fewer than `directions` decide: x is in a bad position. */
static inline bool expect_gradient_aside(const struct scalar *f, const char *what, float *x,
                                         const float *grad, size_t n, double relative,
                                         double absolute, int directions)
{
    const uint64_t stream = rng_stream(what);
    int smooth = 0;
    float *v = room(n, sizeof(*v));

    for (int d = 0; d < 2 * directions && smooth < directions; d++) {
        struct slope s = {0};
        for (size_t i = 0; i < n; i++)
            v[i] = direction(stream, n, d, i);
        struct claim c = claim_along(grad, n, v);
        c.relative = relative, c.absolute = absolute;
        if (!smooth_slope(f, x, n, v, &c, &s))
            continue;
        expect_slope(what, d, &s, &c);
        smooth++;
    }
    return smooth == directions;
}
