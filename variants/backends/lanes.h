/* SPDX-License-Identifier: MIT
 *
 * act and gate over the words of vec.h, for a rectangle of their elements: all of it where they are
 * operations of their own (rows.inc.c), the part just finished where they follow a product
 * (gemm.inc.c). Included after VEC_AVX2 or VEC_AVX512 is defined. */
#ifndef LANES_H
#define LANES_H

#include "backend.h"
#include "vec.h"

#include <math.h>

/* ---- act ---------------------------------------------------------------------------------- */

/* `left` lanes of column j; `at` is their first element. */
VEC_INLINE vf act_lanes(const struct act *o, ptrdiff_t at, int j, int left)
{
    vf t = vld_upto(o->x + at, left, v0());

    if (o->bias)
        t = vadd(t, vld_upto(o->bias + j, left, v0()));
    if (o->kind == ACT_RELU)
        t = vmax(v0(), t); /* in this order a NaN stays one */
    return o->add ? vadd(t, vld_upto(o->add + at, left, v0())) : t;
}

/* Rows [i0, i1), columns [j0, j1); nothing beside them is read or written. */
static inline void act_part(const struct act *o, int i0, int i1, int j0, int j1)
{
    for (int i = i0; i < i1; i++)
        for (int j = j0; j < j1; j += VL) {
            const ptrdiff_t at = (ptrdiff_t)i * o->n + j;
            vst_upto(o->y + at, j1 - j, act_lanes(o, at, j, j1 - j));
        }
}

/* ---- gate --------------------------------------------------------------------------------- */

/* x + z (y - x) would cancel where z is near 1; this form keeps both ends. */
VEC_INLINE vf vblend(vf z, vf x, vf y) { return vfma(z, y, vfnma(z, x, x)); }

/* `left` lanes of column j: `in` is the element of x and y, `pre` that of a and c. */
VEC_INLINE vf gate_lanes(const struct gate_op *o, ptrdiff_t in, ptrdiff_t pre, int j, int left)
{
    const vf a = vld_upto(o->a + pre, left, v0()), x = vld_upto(o->x + in, left, v0());

    switch (o->kind) {
    case GATE_INPUT:
        return vfma(vlogistic(a), x, vld_upto(o->y + in, left, v0()));
    case GATE_OUTPUT: {
        const vf z = vlogistic(vsub(a, vld_upto(o->b + j, left, v0())));
        return vfma(z, vld_upto(o->y + in, left, v0()), x);
    }
    case GATE_HIGHWAY: {
        const vf t = vlogistic(vadd(a, vld_upto(o->b + j, left, v0())));
        return vblend(t, vld_upto(o->y + in, left, v0()), x);
    }
    case GATE_SIGTANH: {
        const vf z = vlogistic(vsub(a, vld_upto(o->b + j, left, v0())));
        return vfma(z, vtanh(vld_upto(o->c + pre, left, v0())), x);
    }
    case GATE_RESET:
        return vmul(vlogistic(a), x);
    case GATE_UPDATE: {
        const vf z = vlogistic(vsub(a, vld_upto(o->b + j, left, v0())));
        return vblend(z, x, vtanh(vld_upto(o->c + pre, left, v0())));
    }
    }
    return v1(NAN);
}

static inline void gate_part(const struct gate_op *o, int i0, int i1, int j0, int j1)
{
    for (int i = i0; i < i1; i++)
        for (int j = j0; j < j1; j += VL) {
            const ptrdiff_t in = (ptrdiff_t)i * o->n + j;
            vst_upto(o->out + in, j1 - j, gate_lanes(o, in, i * o->ld + j, j, j1 - j));
        }
}

#endif
