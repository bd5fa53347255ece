/* SPDX-License-Identifier: MIT
 *
 * Gradients of the element-wise row operations, act, glu and gate, with the vectors of vec.h. */
#include "lanes.h"
#include "rows_shared.h"
#include "simd.h"

/* ---- act, glu ----------------------------------------------------------------------------- */

VEC_INLINE void act_grad_columns_as(enum act_kind kind, const struct act_grad *o, int i0, int i1,
                                    int j0, int j1)
{
    const vf number = act_number(o->beta), factor = act_number(o->factor);
    const ptrdiff_t x_row = act_x_row(o->x_row, o->n);

    for (int j = j0; j < j1; j += VL) {
        const int left = o->n - j;
        const vf shift = o->bias ? vld_upto(o->bias + j, left, v0()) : v0();
        vf bias = v0(), beta = v0();
        for (int i = i0; i < i1; i++) {
            const ptrdiff_t at = (ptrdiff_t)i * o->n + j;
            vf d = vmul(factor, vld_upto(o->d_y + at, left, v0()));
            if (kind != ACT_NONE) {
                const vf x = vadd(vld_upto(o->x + i * x_row + j, left, v0()), shift);
                if (kind == ACT_SWISH && o->d_beta)
                    beta = vfma(d, swish_beta_slope(x, number), beta);
                d = act_back(kind, d, x, number);
            }
            if (o->d_x)
                vst_upto(o->d_x + at, left, d);
            bias = vadd(bias, d);
        }
        if (o->d_bias)
            add_upto(o->d_bias + j, left, bias);
        if (o->d_beta)
            add_upto(o->sums + j, left, beta);
    }
}

static void act_grad_columns(const void *arg, int i0, int i1, int j0, int j1)
{
    const struct act_grad *o = arg;

    ACT_SWITCH(o->kind, act_grad_columns_as, o, i0, i1, j0, j1)
}

static void act_grad_rows(const void *arg, int first, int last)
{
    const struct act_grad *o = arg;

    for (int i = first; i < last; i++) /* memory in its order */
        act_grad_columns(o, i, i + 1, 0, o->n);
}

void AT_ISA(act_grad)(const struct act_grad *o)
{
    float beta = 0.0f;

    CHECK(!o->d_beta || o->kind == ACT_SWISH);
    if (!o->d_bias && !o->d_beta) {
        each_row(act_grad_rows, o, o->rows, o->n, o->threads);
        return;
    }
    for (int j = 0; o->d_beta && j < o->n; j++)
        o->sums[j] = 0.0f;
    each_column(act_grad_columns, o, o->rows, o->n, o->threads);
    for (int j = 0; o->d_beta && j < o->n; j++)
        beta += o->sums[j];
    if (o->d_beta)
        *o->d_beta += beta;
}

VEC_INLINE void glu_grad_columns_as(enum act_kind kind, const struct glu_grad *o, int i0, int i1,
                                    int j0, int j1)
{
    const vf beta = v1(glu_beta(o->beta));
    const float limit = o->limit;

    for (int j = j0; j < j1; j += VL) {
        const int left = o->n - j;
        const vf a_shift = o->a_bias ? vld_upto(o->a_bias + j, left, v0()) : v0();
        const vf b_shift = o->b_bias ? vld_upto(o->b_bias + j, left, v0()) : v0();
        vf a_bias = v0(), b_bias = v0();
        for (int i = i0; i < i1; i++) {
            const ptrdiff_t at = i * o->ld + j;
            const vf d = vld_upto(o->d_y + (ptrdiff_t)i * o->n + j, left, v0());
            const vf a = vadd(vld_upto(o->a + at, left, v0()), a_shift);
            const vf b = vadd(vld_upto(o->b + at, left, v0()), b_shift);
            const vf gate = glu_gate(a, limit), other = glu_other(b, limit);
            const vf back = act_back(kind, vmul(d, other), gate, beta);
            const vf d_a = glu_gate_back(back, a, limit);
            const vf d_b = glu_other_back(vmul(d, act_value(kind, gate, beta)), b, limit);
            vst_upto(o->d_a + at, left, d_a);
            vst_upto(o->d_b + at, left, d_b);
            a_bias = vadd(a_bias, d_a);
            b_bias = vadd(b_bias, d_b);
        }
        if (o->d_a_bias)
            add_upto(o->d_a_bias + j, left, a_bias);
        if (o->d_b_bias)
            add_upto(o->d_b_bias + j, left, b_bias);
    }
}

static void glu_grad_columns(const void *arg, int i0, int i1, int j0, int j1)
{
    const struct glu_grad *o = arg;

    ACT_SWITCH(o->kind, glu_grad_columns_as, o, i0, i1, j0, j1)
}

void AT_ISA(glu_grad)(const struct glu_grad *o)
{
    each_column(glu_grad_columns, o, o->rows, o->n, o->threads);
}

/* ---- gate --------------------------------------------------------------------------------- */

struct gate_lanes {
    vf x, y, a, c, b; /* gradients; b is the part of d_b */
};

/* Column j: `at` is the offset of x, y and d_out, `pre` that of a and c. */
VEC_INLINE struct gate_lanes gate_grad_lanes(const struct gate_grad *o, ptrdiff_t at, ptrdiff_t pre,
                                             int j)
{
    const int left = o->n - j;
    const vf zero = v0(), one = v1(1.0f), a = vld_upto(o->a + pre, left, zero);
    const vf g = vld_upto(o->d_out + at, left, zero),
             b = o->b ? vld_upto(o->b + j, left, zero) : zero;
    const vf x = o->x ? vld_upto(o->x + at, left, zero) : zero;
    const vf y = o->y ? vld_upto(o->y + at, left, zero) : zero;
    const vf c = o->c ? vtanh(vld_upto(o->c + pre, left, zero)) : zero;
    const vf logit = o->kind == GATE_HIGHWAY ? vadd(a, b) : vsub(a, b);
    const vf t = vlogistic(logit);
    const vf rest = vlogistic(vsub(zero, logit)); /* 1 - t without cancelling */
    const vf gt = vmul(g, t), slope = vmul(gt, rest), dc = vmul(gt, vfnma(c, c, one));
    struct gate_lanes d = {.x = g, .y = zero, .a = zero, .c = zero, .b = zero};

    switch (o->kind) {
    case GATE_INPUT:
        d.x = gt;
        d.y = g;
        d.a = vmul(slope, x);
        break;
    case GATE_OUTPUT:
        d.y = gt;
        d.a = vmul(slope, y);
        d.b = vsub(zero, d.a);
        break;
    case GATE_HIGHWAY:
        d.x = gt;
        d.y = vmul(g, rest);
        d.a = d.b = vmul(slope, vsub(x, y));
        break;
    case GATE_SIGTANH:
        d.a = vmul(slope, c);
        d.c = dc;
        d.b = vsub(zero, d.a);
        break;
    case GATE_RESET:
        d.x = gt;
        d.a = vmul(slope, x);
        break;
    case GATE_UPDATE:
        d.x = vmul(g, rest);
        d.a = vmul(slope, vsub(c, x));
        d.c = dc;
        d.b = vsub(zero, d.a);
        break;
    }
    return d;
}

static void gate_grad_columns(const void *arg, int i0, int i1, int j0, int j1)
{
    const struct gate_grad *o = arg;

    for (int j = j0; j < j1; j += VL) {
        const int left = o->n - j;
        vf bias = v0();
        for (int i = i0; i < i1; i++) {
            const ptrdiff_t at = (ptrdiff_t)i * o->n + j, pre = i * o->ld + j;
            const struct gate_lanes d = gate_grad_lanes(o, at, pre, j);
            bias = vadd(bias, d.b);
            if (o->d_x)
                vst_upto(o->d_x + at, left, d.x);
            if (o->d_y)
                vst_upto(o->d_y + at, left, d.y);
            if (o->d_a)
                vst_upto(o->d_a + pre, left, d.a);
            if (o->d_c)
                vst_upto(o->d_c + pre, left, d.c);
        }
        if (o->d_b)
            add_upto(o->d_b + j, left, bias);
    }
}

void AT_ISA(gate_grad)(const struct gate_grad *o)
{
    each_column(gate_grad_columns, o, o->rows, o->n, o->threads);
}
