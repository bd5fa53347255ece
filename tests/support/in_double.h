/* SPDX-License-Identifier: MIT
 *
 * What equations in double are made of: rows from floats, maps, norms and curves of one row. */
#pragma once

#include <math.h>
#include <stddef.h>

static inline double sigma(double x) { return 1 / (1 + exp(-x)); }
static inline double silu(double x) { return x * sigma(x); }

static inline void to_doubles(double *to, const float *x, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = (double)x[i];
}

static inline void to_floats(float *to, const double *x, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = (float)x[i];
}

/* y [to] = W [to,from] x + b; b NULL = none. */
static inline void affine(double *y, const float *w, const float *b, const double *x, int to,
                          int from)
{
    for (int o = 0; o < to; o++) {
        y[o] = b ? (double)b[o] : 0;
        for (int i = 0; i < from; i++)
            y[o] += (double)w[(ptrdiff_t)o * from + i] * x[i];
    }
}

/* A layer norm of x [n] in place; weight NULL = neither that nor a bias. */
static inline void layer_norm(double *x, int n, const float *weight, const float *bias, double eps)
{
    double mean = 0, variance = 0;

    for (int i = 0; i < n; i++)
        mean += x[i] / n;
    for (int i = 0; i < n; i++)
        variance += (x[i] - mean) * (x[i] - mean) / n;
    for (int i = 0; i < n; i++) {
        x[i] = (x[i] - mean) / sqrt(variance + eps);
        x[i] = weight ? x[i] * (double)weight[i] + (double)bias[i] : x[i];
    }
}

static inline double largest(const float *x, size_t n)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)x[i]));
    return most;
}
