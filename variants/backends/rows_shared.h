/* SPDX-License-Identifier: MIT
 *
 * What the row operations of rows.inc.c and rows_grad.inc.c share: how rows are dealt to threads,
 * and the pieces of a softmax row. Included after VEC_AVX2 or VEC_AVX512 is defined. */
#ifndef ROWS_SHARED_H
#define ROWS_SHARED_H

#include "backend.h"
#include "vec.h"

#include <math.h>
#include <stdint.h>

/* Below this many elements a fork and join costs more than a second core brings. */
enum { ROWS_WORTH_FORK = 1 << 15, ROWS_CHUNKS_PER_THREAD = 4 };

typedef void rows_fn(const void *op, int first, int last);

/* Run rows [0, rows) of n elements each. Chunks, because a causal softmax has uneven rows. */
static inline void each_row(rows_fn *run, const void *op, int rows, int n, int threads)
{
    if (threads <= 1 || (int64_t)rows * n < ROWS_WORTH_FORK) {
        run(op, 0, rows);
        return;
    }
    const int chunks = min_int(rows, threads * ROWS_CHUNKS_PER_THREAD);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int c = 0; c < chunks; c++)
        run(op, (int)((int64_t)rows * c / chunks), (int)((int64_t)rows * (c + 1) / chunks));
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
 * [0, n). Farthest first makes that at most three contiguous runs: keys that share the far row,
 * keys with a row of their own, keys that share the future row. */
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

#endif
