/* SPDX-License-Identifier: MIT
 *
 * For tests of activations and gated units: operands, and each curve in double with the rounding
 * error of its value and its slope. */
#ifndef ACT_CASE_H
#define ACT_CASE_H

#include "every_backend.h"
#include "harness/check/op_bounds.h"
#include "open_engine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    o->x = normal(size, "x", 0, spread), o->add = normal(size, "add", 0, 1);
    o->pre = normal(o->wide, "pre", 0, spread), o->d_y = normal(size, "d_y", 0, 1);
    for (size_t i = 0; kind == ACT_EXP && i < size; i++) /* finite, so that errors are */
        o->x[i] = fminf(o->x[i], 60);
    for (size_t i = 0; kind == ACT_EXP && i < o->wide; i++)
        o->pre[i] = fminf(o->pre[i], 60);
    o->a_bias = normal((size_t)n, "a", 0, 1), o->b_bias = normal((size_t)n, "b", 0, 1);
}

static inline void drop(struct units *o)
{
    release(o->x), release(o->add), release(o->pre), release(o->d_y);
    release(o->a_bias), release(o->b_bias);
}

static inline double beta_of(const struct units *o)
{
    return o->kind == ACT_SWISH || o->kind == ACT_TANH ? (double)o->beta : 1;
}

#endif
