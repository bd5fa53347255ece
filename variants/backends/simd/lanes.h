/* SPDX-License-Identifier: MIT
 *
 * act and gate with the vectors of vec.h, for a rectangle of elements: all of it for the row
 * operations (rows.isa.c), the block just finished for a product's epilogue (gemm.inc.c). Included
 * after VEC_AVX2 or VEC_AVX512 is defined. */
#pragma once

#include "variants/backends/backend.h"
#include "vec.h"

/* ---- act ---------------------------------------------------------------------------------- */

/* X(kind, ...) for every kind: each gets its own loops. */
#define ACT_KIND_LIST(X, ...)                                                                      \
    X(ACT_NONE, __VA_ARGS__)                                                                       \
    X(ACT_RELU, __VA_ARGS__) ACT_CURVED_LIST(X, __VA_ARGS__)

/* Those that need many registers. */
#define ACT_CURVED_LIST(X, ...)                                                                    \
    X(ACT_SIGMOID, __VA_ARGS__)                                                                    \
    X(ACT_SWISH, __VA_ARGS__)                                                                      \
    X(ACT_GELU, __VA_ARGS__)                                                                       \
    X(ACT_GELU_TANH, __VA_ARGS__)                                                                  \
    X(ACT_ELU1, __VA_ARGS__)                                                                       \
    X(ACT_TANH, __VA_ARGS__)                                                                       \
    X(ACT_RELU_SQUARED, __VA_ARGS__)                                                               \
    X(ACT_SOFTPLUS, __VA_ARGS__)                                                                   \
    X(ACT_LOG_SIGMOID, __VA_ARGS__) X(ACT_EXP, __VA_ARGS__) X(ACT_HALF_SIGMOID, __VA_ARGS__)

/* f(kind, ...), where the kind is a constant. */
#define ACT_CASE(kind, f, ...)                                                                     \
    case kind:                                                                                     \
        f(kind, __VA_ARGS__);                                                                      \
        break;
#define ACT_SWITCH(kind, f, ...)                                                                   \
    switch (kind) {                                                                                \
        ACT_KIND_LIST(ACT_CASE, f, __VA_ARGS__)                                                    \
    case ACT_KINDS:                                                                                \
        CHECK(!"a kind of activation");                                                            \
    }

/* f of struct act; `kind` is a compile-time constant. */
VEC_INLINE vf act_value(enum act_kind kind, vf x, vf beta)
{
    switch (kind) {
    case ACT_RELU:
        return vmax(v0(), x); /* this order propagates NaN */
    case ACT_SIGMOID:
        return vlogistic(x);
    case ACT_SWISH:
        return vmul(x, vlogistic(vmul(beta, x)));
    case ACT_GELU: {
        const vf a = vabs(x);
        return vfnma(a, vtail(a, vbell(a)), vmax(v0(), x)); /* x Phi(x) = max(0, x) - a Phi(-a) */
    }
    case ACT_GELU_TANH:
        return vmul(x, vlogistic(vgelu_tanh_arg(x)));
    case ACT_ELU1:
        return vsel_lt(v0(), x, vadd(x, v1(1.0f)), vexp(vsub(v0(), vabs(x))));
    case ACT_TANH:
        return vtanh(vmul(beta, x));
    case ACT_RELU_SQUARED: {
        const vf most = vmax(v0(), x);
        return vmul(most, most);
    }
    case ACT_SOFTPLUS:
        return vsoftplus(x);
    case ACT_LOG_SIGMOID:
        return vsub(v0(), vsoftplus(vsub(v0(), x)));
    case ACT_EXP:
        return vexp_any(x);
    case ACT_HALF_SIGMOID:
        return vsel_lt(x, v0(), vlogistic(x), vadd(x, v1(0.5f)));
    default:
        return x;
    }
}

/* f'(x) of the smooth kinds. 1 - s is computed as the logistic of -x, which does not cancel. */
VEC_INLINE vf act_slope(enum act_kind kind, vf x, vf beta)
{
    switch (kind) {
    case ACT_SIGMOID:
        return vmul(vlogistic(x), vlogistic(vsub(v0(), x)));
    case ACT_SWISH: {
        const vf z = vmul(beta, x), s = vlogistic(z);
        return vfma(vmul(z, s), vlogistic(vsub(v0(), z)), s);
    }
    case ACT_GELU: { /* Phi(x) + x phi(x) */
        const vf a = vabs(x), e = vbell(a), q = vtail(a, e);
        const vf phi = vmul(e, v1(0x1.988454p-2f)); /* 1 / sqrt(2 pi) */
        return vfma(x, phi, vsel_neg(x, q, vsub(v1(1.0f), q)));
    }
    case ACT_GELU_TANH: {
        const vf z = vgelu_tanh_arg(x), s = vlogistic(z);
        const vf slope = vfma(vmul(x, x), v1(3 * GELU_TANH_CUBE * GELU_TANH_ARG),
                              v1(GELU_TANH_ARG)); /* dz / dx */
        return vfma(vmul(vmul(x, s), vlogistic(vsub(v0(), z))), slope, s);
    }
    case ACT_ELU1:
        return vsel_lt(v0(), x, v1(1.0f), vexp(vsub(v0(), vabs(x))));
    case ACT_TANH: { /* beta (1 - tanh^2), without cancelling */
        const vf z = vmul(v1(2.0f), vmul(beta, x));
        return vmul(vmul(v1(4.0f), beta), vmul(vlogistic(z), vlogistic(vsub(v0(), z))));
    }
    case ACT_RELU_SQUARED:
        return vmul(v1(2.0f), vmax(v0(), x));
    case ACT_SOFTPLUS:
        return vlogistic(x);
    case ACT_LOG_SIGMOID:
        return vlogistic(vsub(v0(), x));
    case ACT_EXP:
        return vexp_any(x);
    case ACT_HALF_SIGMOID: {
        const vf s = vlogistic(x);
        return vsel_lt(x, v0(), vmul(s, vlogistic(vsub(v0(), x))), v1(1.0f));
    }
    default:
        return v1(1.0f);
    }
}

/* Gradient d passed back through f; an inactive unit passes nothing, even if d is infinite or
 * NaN. */
VEC_INLINE vf act_back(enum act_kind kind, vf d, vf x, vf beta)
{
    if (kind == ACT_RELU)
        return vsel_lt(v0(), x, d, v0());
    const vf back = vmul(d, act_slope(kind, x, beta));
    return kind == ACT_RELU_SQUARED ? vsel_lt(v0(), x, back, v0()) : back;
}

/* Operands of a gated unit within its limit. */
VEC_INLINE vf glu_gate(vf a, float limit) { return limit != 0 ? vmin(v1(limit), a) : a; }
VEC_INLINE vf glu_other(vf b, float limit)
{
    if (limit == 0)
        return b;
    return vadd(vmax(v1(-limit), vmin(v1(limit), b)), v1(1.0f)); /* this order propagates NaN */
}

/* Their gradients: 0 beyond it. */
VEC_INLINE vf glu_gate_back(vf d, vf a, float limit)
{
    return limit != 0 ? vsel_lt(v1(limit), a, v0(), d) : d;
}
VEC_INLINE vf glu_other_back(vf d, vf b, float limit)
{
    return limit != 0 ? vsel_lt(v1(limit), vabs(b), v0(), d) : d;
}

/* d f / d beta of SWISH: x^2 s (1 - s). */
VEC_INLINE vf swish_beta_slope(vf x, vf beta)
{
    const vf z = vmul(beta, x);
    return vmul(vmul(x, vlogistic(z)), vmul(x, vlogistic(vsub(v0(), z))));
}

/* beta and factor. */
VEC_INLINE vf act_number(const float *number) { return v1(number ? *number : 1.0f); }

/* Rows [i0, i1), columns [j0, j1); nothing else is read or written. `kind` is a compile-time
 * constant. */
VEC_INLINE void act_part_as(enum act_kind kind, const struct act *o, int i0, int i1, int j0, int j1)
{
    const vf beta = act_number(o->beta), factor = act_number(o->factor);
    const ptrdiff_t x_row = act_x_row(o->x_row, o->n);

    for (int i = i0; i < i1; i++)
        for (int j = j0; j < j1; j += VL) {
            const ptrdiff_t at = (ptrdiff_t)i * o->n + j;
            const int left = j1 - j;
            vf t = vld_upto(o->x + i * x_row + j, left, v0());
            if (o->bias)
                t = vadd(t, vld_upto(o->bias + j, left, v0()));
            t = act_value(kind, t, beta);
            if (o->factor)
                t = vmul(factor, t);
            if (o->add)
                t = vadd(t, vld_upto(o->add + at, left, v0()));
            vst_upto(o->y + at, left, t);
        }
}

/* Kinds that need many registers stay out of the products whose epilogue they are. */
static __attribute__((noinline)) void act_part_curved(const struct act *o, int i0, int i1, int j0,
                                                      int j1)
{
    switch (o->kind) {
        ACT_CURVED_LIST(ACT_CASE, act_part_as, o, i0, i1, j0, j1)
    default:
        CHECK(!"a curved kind of activation");
    }
}

static inline void act_part(const struct act *o, int i0, int i1, int j0, int j1)
{
    if (o->kind == ACT_NONE)
        act_part_as(ACT_NONE, o, i0, i1, j0, j1);
    else if (o->kind == ACT_RELU)
        act_part_as(ACT_RELU, o, i0, i1, j0, j1);
    else
        act_part_curved(o, i0, i1, j0, j1);
}

/* ---- gate --------------------------------------------------------------------------------- */

/* x + z (y - x) would cancel where z is near 1; this form keeps both ends. */
VEC_INLINE vf vblend(vf z, vf x, vf y) { return vfma(z, y, vfnma(z, x, x)); }

/* `left` lanes of column j: `in` is the offset in x and y, `pre` that in a and c. */
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
