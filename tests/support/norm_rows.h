/* SPDX-License-Identifier: MIT
 *
 * For tests of norms: rows with offsets, and what the papers' equations make of one in double. */
#ifndef NORM_ROWS_H
#define NORM_ROWS_H

#include "attn_case.h"
#include "finite.h"

#include <criterion/parameterized.h>

#define EPS 1e-5f
static const int sizes[][2] = {{1, 1},  {3, 2},   {5, 7},   {2, 8},    {33, 15},
                               {9, 17}, {31, 37}, {5, 130}, {33, 1003}}; /* rows, n */

static inline bool centred(enum norm_kind k) { return k == NORM_LAYER || k == NORM_UNBIASED; }
static inline bool defined(enum norm_kind k, int n) { return k != NORM_UNBIASED || n > 1; }

struct rows_of {
    enum norm_kind kind;
    int rows, n;
    size_t size;
    float *x, *add, *weight, *bias, *d_y;
};

static inline void make(struct rows_of *o, enum norm_kind kind, int rows, int n, float mean)
{
    const size_t size = (size_t)(rows * n);

    *o = (struct rows_of){.kind = kind, .rows = rows, .n = n, .size = size};
    o->x = normal(size, "x", mean, 1), o->add = normal(size, "add", 0, 1);
    o->weight = normal((size_t)n, "weight", 1, 0.5f), o->bias = normal((size_t)n, "bias", 0, 1);
    o->d_y = normal(size, "d_y", 0, 1);
    quantise(o->x, size), quantise(o->weight, (size_t)n), quantise(o->bias, (size_t)n);
}

static inline void drop(struct rows_of *o)
{
    release(o->x), release(o->add), release(o->weight), release(o->bias), release(o->d_y);
}

static inline struct norm forward_of(const struct rows_of *o, float *y, bool add)
{
    return (struct norm){.kind = o->kind,
                         .y = y,
                         .x = o->x,
                         .add = add ? o->add : NULL,
                         .weight = o->weight,
                         .bias = centred(o->kind) ? o->bias : NULL,
                         .rows = o->rows,
                         .n = o->n,
                         .eps = EPS,
                         .threads = 1};
}

static inline struct criterion_test_params every_backend(void)
{
    static int which[32];
    size_t n = 0;

    for (int i = 0; backends[i]; i++)
        which[n++] = i;
    return cr_make_param_array(int, which, n);
}

/* One row in double: what it is divided by, and the mean that is taken off. */
struct moments {
    double mean, root, largest, deviation; /* max |t|, max |t - mean| */
};

static inline double term(const struct norm *o, int i, int e)
{
    const ptrdiff_t at = (ptrdiff_t)i * o->n + e;
    return (double)o->x[at] + (o->add ? (double)o->add[at] : 0);
}

static inline struct moments moments_of(const struct norm *o, int i)
{
    struct moments m = {0};
    double squares = 0;

    for (int e = 0; e < o->n; e++) {
        m.mean += centred(o->kind) ? term(o, i, e) / o->n : 0;
        m.largest = fmax(m.largest, fabs(term(o, i, e)));
    }
    for (int e = 0; e < o->n; e++) {
        const double d = term(o, i, e) - m.mean;
        squares += d * d;
        m.deviation = fmax(m.deviation, fabs(d));
    }
    m.root = o->kind == NORM_LAYER || o->kind == NORM_RMS ? sqrt(squares / o->n + (double)EPS)
             : o->kind == NORM_SCALE                      ? fmax(sqrt(squares), (double)EPS)
                                     : sqrt(squares / (o->n - 1)) + (double)EPS;
    return m;
}

static inline double weight_of(const struct norm *o, int e)
{
    return (double)o->weight[o->kind == NORM_SCALE ? 0 : e];
}

#endif
