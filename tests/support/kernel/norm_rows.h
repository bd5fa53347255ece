/* SPDX-License-Identifier: MIT
 *
 * For tests of norms: rows with offsets, and the papers' equations of one in double. */
#pragma once

#include "harness/check/op_bounds.h"
#include "tests/support/finite.h"
#include "tests/support/kernel/fenced.h"

#define EPS 1e-5f
static const int sizes[][2] = {{1, 1},  {3, 2},   {5, 7},   {2, 8},    {33, 15},
                               {9, 17}, {31, 37}, {5, 130}, {33, 1003}}; /* rows, n */

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
    o->x = normals(size, "x", mean, 1), o->add = normals(size, "add", 0, 1);
    o->weight = normals((size_t)n, "weight", 1, 0.5f), o->bias = normals((size_t)n, "bias", 0, 1);
    o->d_y = normals(size, "d_y", 0, 1);
    quantise(o->x, size), quantise(o->weight, (size_t)n), quantise(o->bias, (size_t)n);
}

static inline struct norm forward_of(const struct rows_of *o, float *y, bool add)
{
    return (struct norm){
        MEMBERS(o->, kind, x, weight, rows, n),         .y = y,     .add = add ? o->add : NULL,
        .bias = norm_centred(o->kind) ? o->bias : NULL, .eps = EPS, .threads = 1};
}
