/* SPDX-License-Identifier: MIT
 *
 * The squares of singular values are the eigenvalues of the smaller Gram matrix: Householder's
 * reflections make it tridiagonal, and bisection finds eigenvalues by counting those below a number
 * (Sturm), because only sums of the largest are asked for and n is some hundreds. */
#include "energy.h"

#include "variants/base/base.h"

/* g [n,n] = x x^T, or x^T x where there are fewer columns. */
static void gram(double *g, int n, const double *x, int rows, int cols, int ld)
{
    const bool by_row = rows <= cols;
    const int terms = by_row ? cols : rows;
    const ptrdiff_t of = by_row ? ld : 1, step = by_row ? 1 : ld;

    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = 0;
            for (int k = 0; k < terms; k++)
                sum += x[i * of + k * step] * x[j * of + k * step];
            g[(ptrdiff_t)i * n + j] = g[(ptrdiff_t)j * n + i] = sum;
        }
}

/* Column k of what is left becomes (d_k, e_k, 0, ...): g <- H g H with
 *
 *   H = I - beta v v^T
 *   v = column - (e_k, 0, ...)
 *
 * v, w: room for n numbers each. */
static void reflect(double *g, int n, int k, double *e, double *v, double *w)
{
    double square = 0, dot = 0;

    for (int i = k + 1; i < n; i++) {
        v[i] = g[(ptrdiff_t)i * n + k];
        square += v[i] * v[i];
    }
    *e = -copysign(sqrt(square), v[k + 1]);
    square += *e * (*e - 2 * v[k + 1]);
    v[k + 1] -= *e;
    if (square <= 0)
        return;
    const double beta = 2 / square;
    for (int i = k + 1; i < n; i++) {
        w[i] = 0;
        for (int j = k + 1; j < n; j++)
            w[i] += beta * g[(ptrdiff_t)i * n + j] * v[j];
        dot += w[i] * v[i];
    }
    for (int i = k + 1; i < n; i++)
        w[i] -= beta / 2 * dot * v[i];
    for (int i = k + 1; i < n; i++)
        for (int j = k + 1; j < n; j++)
            g[(ptrdiff_t)i * n + j] -= v[i] * w[j] + w[i] * v[j];
}

/* How many eigenvalues of the tridiagonal matrix are below x. */
static int below(const double *d, const double *e, int n, double x)
{
    int count = 0;
    double q = 1;

    for (int i = 0; i < n; i++) {
        q = d[i] - x - (i > 0 ? e[i - 1] * e[i - 1] / q : 0);
        if (fabs(q) < DBL_MIN)
            q = -DBL_MIN;
        count += q < 0;
    }
    return count;
}

/* The k-th largest eigenvalue, from 0; all are in [0, most]. */
static double largest(const double *d, const double *e, int n, int k, double most)
{
    double low = 0, high = most;

    while (high - low > 1e-13 * most) {
        const double middle = (low + high) / 2;
        if (below(d, e, n, middle) >= n - k)
            high = middle;
        else
            low = middle;
    }
    return (low + high) / 2;
}

int energy_rank(const double *x, int rows, int cols, int ld, double share)
{
    const int n = min_int(rows, cols);
    double *const g = malloc(sizeof(*g) * ((size_t)n * (size_t)n + 4 * (size_t)n));
    int rank = 0;

    if (!g)
        return -1;
    double *const d = g + (ptrdiff_t)n * n, *const e = d + n, *const v = e + n, *const w = v + n;
    gram(g, n, x, rows, cols, ld);
    for (int k = 0; k + 1 < n; k++)
        reflect(g, n, k, &e[k], v, w);
    double all = 0, sum = 0;
    for (int i = 0; i < n; i++)
        all += d[i] = g[(ptrdiff_t)i * n + i];
    while (rank < n && sum < share * all)
        sum += largest(d, e, n, rank++, all);
    free(g);
    return rank;
}
