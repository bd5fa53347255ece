/* SPDX-License-Identifier: MIT
 *
 * What plain loops over numbers share. Products of matrices and row operations are a backend's. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* How many threads run a loop over n elements: one where a parallel region costs more than it
 * saves. */
static inline int team_for(int threads, double n)
{
    enum { WORTH = 16384 };

    return n > WORTH ? threads : 1;
}

/* In this order, in double. */
static inline double dot_in_order(const float *x, const float *y, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    return sum;
}

/* y += by x */
static inline void add_times(float *y, const float *x, float by, size_t n, int threads)
{
#pragma omp parallel for simd num_threads(team_for(threads, (double)n))
    for (size_t i = 0; i < n; i++)
        y[i] += by * x[i];
}

/* y += by x, in this thread. */
static inline void add_in_lanes(float *y, float by, const float *x, int n)
{
#pragma omp simd
    for (int i = 0; i < n; i++)
        y[i] += by * x[i];
}

/* Where the largest of n >= 1 numbers is, the first of equal ones. */
static inline int largest_at(const float *x, int n)
{
    int at = 0;

    for (int i = 1; i < n; i++)
        at = x[i] > x[at] ? i : at;
    return at;
}

/* Of n >= 1 numbers; NaN is passed over. */
static inline double largest_of(const float *x, ptrdiff_t n)
{
    double most = -INFINITY;

    for (ptrdiff_t i = 0; i < n; i++)
        most = fmax(most, (double)x[i]);
    return most;
}

/* Softmax of n weights, in double. */
static inline void shares_of(const float *w, int n, float *share)
{
    const double most = largest_of(w, n);
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += exp((double)w[i] - most);
    for (int i = 0; i < n; i++)
        share[i] = (float)(exp((double)w[i] - most) / sum);
}

/* From the gradient of such shares to that of their weights, added. */
static inline void shares_grad(const float *share, const double *d_share, int n, float *d_w)
{
    double mean = 0;

    for (int i = 0; i < n; i++)
        mean += (double)share[i] * d_share[i];
    for (int i = 0; i < n; i++)
        d_w[i] += (float)((double)share[i] * (d_share[i] - mean));
}

static inline bool floats_finite(const float *x, int n)
{
    float sum = 0; /* 0 times infinity is no number */

#pragma omp simd reduction(+ : sum)
    for (int e = 0; e < n; e++)
        sum += 0 * x[e];
    return sum == 0;
}

/* In lanes of the compiler's choice. */
static inline float dot_in_lanes(const float *x, const float *y, int n)
{
    float sum = 0;

#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}
