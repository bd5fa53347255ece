/* SPDX-License-Identifier: MIT
 *
 * For checks of kernels: buffers with guard words on both sides, reproducible random values, and
 * one comparison that handles NaN and infinity. U = 2^-24 is half an ulp of 1: the relative error
 * of one rounded operation. */
#pragma once

#include "variants/base/base.h"
#include "variants/base/rng.h"

#define U 0x1p-24
#define SMALLEST 0x1p-126 /* absolute error of underflow */
enum { GUARD = 32, SEED = 20240817 };
#define GUARD_VALUE (-12345.678f)

/* n floats, all GUARD_VALUE, with GUARD more on either side; `release` frees them. */
float *guarded(size_t n);
void release(float *p);
bool guards_intact(const float *p, size_t n);

/* Normal numbers; the same for the same name. */
float *normal(size_t n, const char *name, float mean, float sd);
/* Away from zero, as terms of a divisor must be. */
float *positive(size_t n, const char *name);
/* Round to multiples of 2^-13. */
void quantise(float *x, size_t n);

/* |got - want| in units of the bound; a NaN must match a NaN, infinities exactly. */
double in_bounds(double got, double want, double bound);
