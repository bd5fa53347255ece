/* SPDX-License-Identifier: MIT
 *
 * Vectors of floats under the same names for every instruction set: vec_NAME.h has what differs,
 * this file what is made of it. Files of kernels (NAME.isa.c) are compiled once for each set, with
 * its flags and with VEC_NAME defined (Makefile). Everything here is static inline, so none of it
 * can be linked into code that runs on a machine without these instructions.
 *
 * vmax and vmin return their second operand when either is a NaN, as the instructions do. */
#pragma once

#include "variants/base/elem.h"

/* UNROLL precedes a loop with constant bounds whose body indexes an array of registers, UNROLL4 a
 * short inner loop of any length. */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#define UNROLL4 _Pragma("clang loop unroll_count(4)")
#else
#define UNROLL _Pragma("GCC unroll 64")
#define UNROLL4 _Pragma("GCC unroll 4")
#endif
#define VEC_INLINE static inline __attribute__((always_inline, unused))

#if defined(VEC_AVX512)
#include "vec_avx512.h"
#elif defined(VEC_AVX2)
#include "vec_avx2.h"
#elif defined(VEC_NEON)
#include "vec_neon.h"
#else
#error "no set of vectors is chosen  -> VEC_AVX2, VEC_AVX512 or VEC_NEON"
#endif

/* Common to all instruction sets. */

#if !defined(VEC_EXP2)
/* 2^x for x <= 127 within 2.2e-7 relative; 0 below 2^-126.5 and for -inf. f = x - round(x) is in
 * [-1/2,1/2], the polynomial is the degree-5 minimax of 2^f there (7.5e-8). */
VEC_INLINE vf vexp2(vf x)
{
    const vf y = vmax(v1(-127.0f), x);
    const vf n = vround(y), f = vsub(y, n);
    vf p = v1(0x1.5c08e4p-10f);

    p = vfma(p, f, v1(0x1.3d0c52p-7f));
    p = vfma(p, f, v1(0x1.c6b6e4p-5f));
    p = vfma(p, f, v1(0x1.ebf918p-3f));
    p = vfma(p, f, v1(0x1.62e428p-1f));
    p = vfma(p, f, v1(0x1.000002p+0f));
    return vscale2(p, n);
}
#endif

/* Fetch the lines of n floats, which may be read soon, into L2. */
VEC_INLINE void vprefetch(const float *p, int n)
{
    for (int i = 0; i < n; i += 16)
        __builtin_prefetch(p + i, 0, 2);
}
/* Into L1. */
VEC_INLINE void vprefetch_l1(const float *p, int n)
{
    for (int i = 0; i < n; i += 16)
        __builtin_prefetch(p + i, 0, 3);
}

VEC_INLINE vf vld_n(const float *p, int n) { return vld_m(p, vfirst(n), v0()); }
VEC_INLINE void vst_n(float *p, int n, vf a) { vst_m(p, vfirst(n), a); }

/* A whole vector, or the remaining n < VL elements with `fill` in the other lanes. */
VEC_INLINE vf vld_upto(const float *p, int n, vf fill)
{
    return n >= VL ? vld(p) : vld_m(p, vfirst(n), fill);
}
VEC_INLINE void vst_upto(float *p, int n, vf a)
{
    if (n >= VL)
        vst(p, a);
    else
        vst_n(p, n, a);
}

/* e^x for x <= 64, within 2 ulp; 0 for subnormal results and for -inf. Steps:
 *   clamp   e^-88.03 = 2^-127 already counts as 0; avoids -inf - -inf
 *   n       nearest integer to x / ln 2
 *   r       x - n ln 2 in two steps; 0x1.63p-1 has nine bits, so n times it is exact
 *   p       e^r = 1 + r + r^2 q(r), minimax of degree 6 on |r| <= ln 2 / 2 (3.1e-9) */
VEC_INLINE vf vexp(vf x)
{
    const vf y = vmax(v1(-0x1.601e68p+6f), x);
    const vf n = vround(vmul(y, v1(0x1.715476p+0f)));
    const vf r = vfnma(n, v1(-0x1.bd0106p-13f), vfnma(n, v1(0x1.63p-1f), y));
    vf p = v1(0x1.6a2448p-10f);

    p = vfma(p, r, v1(0x1.1239d4p-7f));
    p = vfma(p, r, v1(0x1.5558f2p-5f));
    p = vfma(p, r, v1(0x1.555492p-3f));
    p = vfma(p, r, v1(0x1.fffffcp-2f));
    p = vfma(vmul(r, r), p, r);
    return vsel_lt(x, v1(-0x1.5d589ep+6f), v0(), vscale2(vadd(p, v1(1.0f)), n));
}

/* e^x for any x, within 9 U: above 0 the square of e^(x/2), whose argument is exact. */
VEC_INLINE vf vexp_any(vf x)
{
    const vf half = vmin(v1(64.0f), vmul(v1(0.5f), x)); /* e^128 is infinite already */
    const vf e = vexp(vsel_lt(v0(), x, half, x));
    return vsel_lt(v0(), x, vmul(e, e), e);
}

/* log(1 + e) for 0 <= e <= 1, within 4 U: 2 atanh(s) with s = e / (2 + e) <= 1/3, as s times 2 + 2
 * t q(t), t = s^2, q the polynomial of degree 4 near the minimax (1.0e-9). */
VEC_INLINE vf vlog1p(vf e)
{
    const vf s = vdiv(e, vadd(v1(2.0f), e)), t = vmul(s, s), twice = vadd(s, s);
    vf q = v1(0x1.dba260p-4f);

    q = vfma(q, t, v1(0x1.bc8cf8p-4f));
    q = vfma(q, t, v1(0x1.24c926p-3f));
    q = vfma(q, t, v1(0x1.9998d4p-3f));
    q = vfma(q, t, v1(0x1.555556p-2f));
    return vfma(vmul(twice, t), q, twice);
}

/* log(1 + e^x): both terms are positive. */
VEC_INLINE vf vsoftplus(vf x) { return vadd(vmax(v0(), x), vlog1p(vexp(vsub(v0(), vabs(x))))); }

/* 1 / (1 + e^-x): with e = e^-|x| it is 1/(1+e) for x >= 0 and e/(1+e) for x < 0, so that neither
 * tail overflows or cancels. */
VEC_INLINE vf vlogistic(vf x)
{
    const vf e = vexp(vsub(v0(), vabs(x)));
    return vdiv(vsel_neg(x, e, v1(1.0f)), vadd(v1(1.0f), e));
}

/* tanh x within 4 ulp everywhere. Below 5/8, where 1 - e^-2|x| would cancel, x + x^3 q(x^2),
 * minimax in the relative error (4.4e-9); above, (1 - e) / (1 + e) with e = e^-2|x| < 0.29. */
VEC_INLINE vf vtanh(vf x)
{
    const vf a = vabs(x), t = vmul(x, x), e = vexp(vmul(v1(-2.0f), a));
    const vf big = vdiv(vsub(v1(1.0f), e), vadd(v1(1.0f), e));
    vf q = v1(-0x1.75e1dp-8f);

    q = vfma(q, t, v1(0x1.52269cp-6f));
    q = vfma(q, t, v1(-0x1.b83c5ap-5f));
    q = vfma(q, t, v1(0x1.110726p-3f));
    q = vfma(q, t, v1(-0x1.555532p-2f));
    q = vfma(vmul(x, t), q, x);
    return vsel_lt(a, v1(0.625f), q, vsel_neg(x, vsub(v0(), big), big));
}

/* e^(-a^2/2) for a >= 0: the normal density without its factor. Rounding a^2 once gives a relative
 * error of a^2/2 U. */
VEC_INLINE vf vbell(vf a) { return vexp(vmul(v1(-0.5f), vmul(a, a))); }

/* Phi(-a) for a >= 0, given bell = e^(-a^2/2), within 9 U plus bell's own error. Their ratio falls
 * smoothly from 1/2 like 1/a, so t q(t) with t = 1 / (1 + 0.266 a) fits it for all a: q is the
 * minimax of degree 8 in the relative error up to a = 13.3, where bell is 0 (2.4e-8). */
VEC_INLINE vf vtail(vf a, vf bell)
{
    const vf t = vdiv(v1(1.0f), vfma(a, v1(0x1.10624ep-2f), v1(1.0f)));
    vf q = v1(0x1.f42266p-6f);

    q = vfma(q, t, v1(-0x1.209ad8p-3f));
    q = vfma(q, t, v1(0x1.aaa2a4p-3f));
    q = vfma(q, t, v1(-0x1.b525e6p-4f));
    q = vfma(q, t, v1(0x1.0d9b3ap-3f));
    q = vfma(q, t, v1(0x1.016152p-4f));
    q = vfma(q, t, v1(0x1.a3b782p-4f));
    q = vfma(q, t, v1(0x1.b101eep-4f));
    q = vfma(q, t, v1(0x1.b2bc80p-4f));
    return vmul(bell, vmul(q, t));
}

/* 2 sqrt(2/pi) (x + 0.044715 x^3): the argument of the logistic in GELU's tanh form. */
#define GELU_TANH_ARG 0x1.988454p+0f
#define GELU_TANH_CUBE 0.044715f
VEC_INLINE vf vgelu_tanh_arg(vf x)
{
    const vf cubic = vfma(vmul(x, x), v1(GELU_TANH_CUBE), v1(1.0f));
    return vmul(vmul(x, v1(GELU_TANH_ARG)), cubic);
}
