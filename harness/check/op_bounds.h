/* SPDX-License-Identifier: MIT
 *
 * Operations in double, and how far two correct implementations may be apart. Bounds are derived
 * from the arithmetic, in units of U (guarded.h): one rounded operation is off by U relative,
 * vector exp by 2 ulp, 4 U. */
#pragma once

#include "guarded.h"

#include "variants/backends/backend.h"

/* Element (i,j) of a product whose c was `old`. A sum of k products in any order is off by
 * k U sum |a||b|; alpha, beta and their sum add 3 U. The reference's store adds one more. Numbers
 * of b that are a scale times an integer may be multiplied by it before or after, 2 U. */
double product_bound(const struct gemm *g, double old, int i, int j);

/* One row of a norm: the mean that is subtracted, the divisor, and the largest |t| and |t - mean|
 * of t = x + add. */
struct moments {
    double mean, root, largest, deviation;
};
struct moments moments_of(const struct norm *o, int i);
/* Does this kind subtract the mean? */
static inline bool norm_centred(enum norm_kind k) { return k == NORM_LAYER || k == NORM_UNBIASED; }
/* t of element e in row i; its weight. */
double norm_term(const struct norm *o, int i, int e);
double norm_weight(const struct norm *o, int i, int e);
/* At most by how much y follows its normalised row: |weight|, or of an adaptive one |c| (1 + 2 k
 * |xhat|). */
double norm_gain(const struct norm *o, const struct moments *m, int i, int e);
/* The bound of element e in row i, whose value is `want`. */
double norm_bound(const struct norm *o, const struct moments *m, double want, int i, int e);

/* An activation and its slope at t, an argument rounded once, and the bounds of their rounding
 * errors. */
struct exact {
    double f, slope;
    double f_bound, slope_bound;
};
struct exact exactly(enum act_kind kind, double t, double beta);
