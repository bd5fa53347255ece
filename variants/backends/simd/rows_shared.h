/* SPDX-License-Identifier: MIT
 *
 * What rows.isa.c and rows_grad.isa.c share: dividing rows among threads, and the pieces of a
 * softmax and of a norm row. Included after VEC_AVX2 or VEC_AVX512 is defined. */
#pragma once

#include "variants/backends/backend.h"
#include "variants/backends/split.h"
#include "vec.h"

typedef void rows_fn(const void *op, int first, int last);

/* Run rows [0, rows) of n elements each. */
static inline void each_row(rows_fn *run, const void *op, int rows, int n, int threads)
{
    const int chunks = split_rows(rows, n, threads);

    if (chunks <= 1) {
        run(op, 0, rows);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int c = 0; c < chunks; c++)
        run(op, split_at(rows, c, chunks), split_at(rows, c + 1, chunks));
}

enum { COLUMN_CHUNK = 32 }; /* rows summed in a register before they are added to memory */

typedef void columns_fn(const void *op, int i0, int i1, int j0, int j1);

/* Column sums are divided among threads by columns: each strip of VL columns is summed in chunks of
 * rows, one chunk after the other, so a sum does not depend on which thread computes it. A range of
 * columns is a whole number of strips. */
static inline void each_column(columns_fn *run, const void *op, int rows, int n, int threads)
{
    const struct split_columns s = split_columns(rows, n, threads);

#pragma omp parallel for num_threads(s.parts) schedule(static, 1)
    for (int t = 0; t < s.parts; t++) {
        const int j0 = split_columns_at(&s, t), j1 = split_columns_at(&s, t + 1);
        for (int i = 0; i < rows; i += COLUMN_CHUNK)
            run(op, i, min_int(i + COLUMN_CHUNK, rows), j0, j1);
    }
}

VEC_INLINE void add_upto(float *dst, int left, vf a)
{
    vst_upto(dst, left, vadd(vld_upto(dst, left, v0()), a));
}

/* s[0..n) += t[0..n). */
static inline void add_run(float *s, const float *t, int n)
{
    for (int j = 0; j < n; j += VL)
        vst_upto(s + j, n - j, vadd(vld_upto(s + j, n - j, v0()), vld_upto(t + j, n - j, v0())));
}

static inline void add_const(float *s, float c, int n)
{
    for (int j = 0; j < n; j += VL)
        vst_upto(s + j, n - j, vadd(vld_upto(s + j, n - j, v0()), v1(c)));
}

/* Add a table in distance order to the scores of keys [lo, hi): key j has row j + shift, clamped to
 * [0, n). That is at most three contiguous runs: keys that share the far row, keys with a row each,
 * keys that share the future row. */
static inline void add_relative(float *s, int lo, int hi, const float *t, int n, int shift)
{
    const int near = clamp_int(-shift, lo, hi);
    const int future = clamp_int(n - shift, near, hi);

    add_const(s + lo, t[0], near - lo);
    add_run(s + near, t + near + shift, future - near);
    add_const(s + future, t[n - 1], hi - future);
}

static inline float row_max(const float *s, int n)
{
    const vf least = v1(-INFINITY);
    vf m = least;

    for (int j = 0; j < n; j += VL)
        m = vmax(m, vld_upto(s + j, n - j, least));
    return vmax_lanes(m);
}

/* 1 / (divisor of a centred row), from its variance. Rounding may leave a constant row's variance
 * just below 0. */
static inline float centred_factor(enum norm_kind kind, float variance, int n, float eps)
{
    if (kind == NORM_LAYER)
        return 1.0f / sqrtf(variance + eps);
    const float v = variance < 0.0f ? 0.0f : variance;
    return 1.0f / (sqrtf(v * ((float)n / (float)(n - 1))) + eps);
}

/* The weight of an adaptive norm (struct norm). */
static inline vf ada_weight(float c, float k, vf xhat) { return vfnma(v1(c * k), xhat, v1(c)); }

/* Likewise for kinds without centring, from the sum of squares. */
static inline float length_factor(enum norm_kind kind, float squares, int n, float eps)
{
    if (kind == NORM_RMS)
        return 1.0f / sqrtf(squares / (float)n + eps);
    const float length = sqrtf(squares);
    return 1.0f / (length < eps ? eps : length); /* propagates NaN */
}
