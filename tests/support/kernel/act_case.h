/* SPDX-License-Identifier: MIT
 *
 * For tests of activations and gated units: operands, and each curve in double with the rounding
 * error of its value and its slope. */
#pragma once

#include "harness/check/op_bounds.h"
#include "tests/support/every_backend.h"
#include "tests/support/kernel/fenced.h"
#include "tests/support/open_engine.h"

/* Operands of act [rows,n], and of glu, whose a and b are columns of one [rows,ld]. */
struct units {
    enum act_kind kind;
    int rows, n;
    ptrdiff_t ld;
    size_t size, wide;
    float *x, *add, *pre, *a_bias, *b_bias, *d_y, beta;
};

static inline void make(struct units *o, enum act_kind kind, int rows, int n, float spread)
{
    const size_t size = (size_t)(rows * n);

    *o = (struct units){.kind = kind, .rows = rows, .n = n, .size = size, .beta = 1.375f};
    o->ld = 2 * n + 3;
    o->wide = (size_t)(rows * o->ld);
    o->x = normals(size, "x", 0, spread), o->add = normals(size, "add", 0, 1);
    o->pre = normals(o->wide, "pre", 0, spread), o->d_y = normals(size, "d_y", 0, 1);
    for (size_t i = 0; kind == ACT_EXP && i < size; i++) /* finite, so that errors are */
        o->x[i] = fminf(o->x[i], 60);
    for (size_t i = 0; kind == ACT_EXP && i < o->wide; i++)
        o->pre[i] = fminf(o->pre[i], 60);
    o->a_bias = normals((size_t)n, "a", 0, 1), o->b_bias = normals((size_t)n, "b", 0, 1);
}

/* Units of every kind and of many sizes, the last of which is large enough for several threads. */
static inline void each_units(const float *spreads, size_t n_spreads, int modes,
                              void (*judge)(const struct units *, int mode))
{
    static const int sizes[][2] = {{1, 1},   {3, 2},   {2, 8},    {33, 15},
                                   {65, 17}, {31, 37}, {33, 1003}};

    for (enum act_kind kind = 0; kind < ACT_KINDS; kind++)
        for (size_t s = 0; s < ARRAY_LEN(sizes); s++)
            for (size_t w = 0; w < n_spreads; w++) {
                struct units o;
                make(&o, kind, sizes[s][0], sizes[s][1], spreads[w]);
                for (int mode = 0; mode < modes; mode++)
                    judge(&o, mode);
            }
}

static inline double beta_of(const struct units *o)
{
    return o->kind == ACT_SWISH || o->kind == ACT_TANH ? (double)o->beta : 1;
}
