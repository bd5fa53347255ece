/* SPDX-License-Identifier: MIT
 *
 * Vectors of floats under the same names for AVX2 and AVX-512; only this file depends on which one
 * is meant. The including file first defines VEC_AVX2 or VEC_AVX512 and is compiled with that
 * instruction set's flags. Everything here is static inline, so none of it can be linked into code
 * that runs on a machine without these instructions.
 *
 * vmax and vmin return their second operand when either is a NaN, as the instructions do. */
#ifndef VEC_H
#define VEC_H

#include <immintrin.h>
#include <stdint.h>

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

enum { VL = 16, VEC_REGISTERS = 32 };
typedef __m512 vf;

VEC_INLINE vf v1(float x) { return _mm512_set1_ps(x); }
VEC_INLINE vf v0(void) { return _mm512_setzero_ps(); }
VEC_INLINE vf vld(const float *p) { return _mm512_loadu_ps(p); }
VEC_INLINE void vst(float *p, vf a) { _mm512_storeu_ps(p, a); }
VEC_INLINE vf vadd(vf a, vf b) { return _mm512_add_ps(a, b); }
VEC_INLINE vf vsub(vf a, vf b) { return _mm512_sub_ps(a, b); }
VEC_INLINE vf vmul(vf a, vf b) { return _mm512_mul_ps(a, b); }
VEC_INLINE vf vdiv(vf a, vf b) { return _mm512_div_ps(a, b); }
VEC_INLINE vf vfma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
VEC_INLINE vf vfnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); } /* c - a b */
VEC_INLINE vf vmax(vf a, vf b) { return _mm512_max_ps(a, b); }
VEC_INLINE vf vmin(vf a, vf b) { return _mm512_min_ps(a, b); }
VEC_INLINE vf vabs(vf a) { return _mm512_abs_ps(a); }
/* a where x < 0 or x is -0, b elsewhere. */
VEC_INLINE vf vsel_neg(vf x, vf a, vf b)
{
    return _mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(x)), b, a);
}
/* a where x < y, b elsewhere and where either is a NaN. */
VEC_INLINE vf vsel_lt(vf x, vf y, vf a, vf b)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, _CMP_LT_OQ), b, a);
}

/* The first n lanes, 0 <= n <= VL. */
typedef __mmask16 vmask;
VEC_INLINE vmask vfirst(int n) { return (vmask)((1u << n) - 1u); }
/* The lanes whose bit is set, the first the lowest. */
VEC_INLINE vmask vlanes(uint64_t bits) { return (vmask)bits; }
VEC_INLINE vf vld_m(const float *p, vmask m, vf fill) { return _mm512_mask_loadu_ps(fill, m, p); }
VEC_INLINE void vst_m(float *p, vmask m, vf a) { _mm512_mask_storeu_ps(p, m, a); }
/* a b in the lanes of m, a in the others. */
VEC_INLINE vf vmul_m(vf a, vmask m, vf b) { return _mm512_mask_mul_ps(a, m, a, b); }

VEC_INLINE float vsum(vf a) { return _mm512_reduce_add_ps(a); }
VEC_INLINE float vmax_lanes(vf a) { return _mm512_reduce_max_ps(a); }

/* Lane i of the result is vsum(r[i]), added in the same order: halves are folded upon each other,
 * of two vectors at a time, which takes 3 instructions a vector. */
VEC_INLINE vf vsums(const vf r[VL])
{
    vf t[8], u[4], w[2];

    UNROLL
    for (int i = 0; i < 8; i++) {
        const vf a = r[i + (i & 4)], b = r[i + (i & 4) + 4];
        t[i] = vadd(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    }
    UNROLL
    for (int i = 0; i < 4; i++) /* lanes of 4 floats: rows i, 4 + i, 8 + i, 12 + i */
        u[i] = vadd(_mm512_shuffle_f32x4(t[i], t[4 + i], 0x88),
                    _mm512_shuffle_f32x4(t[i], t[4 + i], 0xdd));
    UNROLL
    for (int i = 0; i < 2; i++) {
        const __m512d a = _mm512_castps_pd(u[2 * i]), b = _mm512_castps_pd(u[2 * i + 1]);
        w[i] = vadd(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                    _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
    }
    return vadd(_mm512_shuffle_ps(w[0], w[1], 0x88), _mm512_shuffle_ps(w[0], w[1], 0xdd));
}

/* x rounded to the nearest integer, and 2^n a for such an n. */
VEC_INLINE vf vround(vf x) { return _mm512_roundscale_ps(x, 8 /* nearest, quiet */); }
VEC_INLINE vf vscale2(vf a, vf n) { return _mm512_scalef_ps(a, n); }

/* 2^x within 1.5e-7 relative; 0 for -inf. vreduce leaves f = x - floor(x) in [0,1) (0 for -inf),
 * the polynomial is the degree-5 minimax of 2^f there (7.5e-8), vscalef multiplies by 2^floor(x).
 */
VEC_INLINE vf vexp2(vf x)
{
    const vf f = _mm512_reduce_ps(x, 9 /* floor, quiet */);
    vf p = v1(0x1.ec3208p-10f);

    p = vfma(p, f, v1(0x1.26900ep-7f));
    p = vfma(p, f, v1(0x1.c95446p-5f));
    p = vfma(p, f, v1(0x1.ebd5a8p-3f));
    p = vfma(p, f, v1(0x1.62e4f6p-1f));
    p = vfma(p, f, v1(0x1.fffffep-1f));
    return _mm512_scalef_ps(p, x);
}

/* r[i][j] <-> r[j][i]: pairs, then quads inside 128-bit lanes, then the lanes themselves. */
VEC_INLINE void vtranspose(vf r[VL])
{
    vf t[VL];

    UNROLL
    for (int i = 0; i < 16; i += 4) {
        const __m512d lo01 = _mm512_castps_pd(_mm512_unpacklo_ps(r[i], r[i + 1]));
        const __m512d hi01 = _mm512_castps_pd(_mm512_unpackhi_ps(r[i], r[i + 1]));
        const __m512d lo23 = _mm512_castps_pd(_mm512_unpacklo_ps(r[i + 2], r[i + 3]));
        const __m512d hi23 = _mm512_castps_pd(_mm512_unpackhi_ps(r[i + 2], r[i + 3]));
        t[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(lo01, lo23));
        t[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(lo01, lo23));
        t[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(hi01, hi23));
        t[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(hi01, hi23));
    }
    UNROLL
    for (int c = 0; c < 4; c++) { /* lane l of t[4 g + c] is rows 4 g.. of column 4 l + c */
        const vf even01 = _mm512_shuffle_f32x4(t[c], t[4 + c], 0x88);
        const vf odd01 = _mm512_shuffle_f32x4(t[c], t[4 + c], 0xdd);
        const vf even23 = _mm512_shuffle_f32x4(t[8 + c], t[12 + c], 0x88);
        const vf odd23 = _mm512_shuffle_f32x4(t[8 + c], t[12 + c], 0xdd);
        r[c] = _mm512_shuffle_f32x4(even01, even23, 0x88);
        r[8 + c] = _mm512_shuffle_f32x4(even01, even23, 0xdd);
        r[4 + c] = _mm512_shuffle_f32x4(odd01, odd23, 0x88);
        r[12 + c] = _mm512_shuffle_f32x4(odd01, odd23, 0xdd);
    }
}

#elif defined(VEC_AVX2)

enum { VL = 8, VEC_REGISTERS = 16 };
typedef __m256 vf;

VEC_INLINE vf v1(float x) { return _mm256_set1_ps(x); }
VEC_INLINE vf v0(void) { return _mm256_setzero_ps(); }
VEC_INLINE vf vld(const float *p) { return _mm256_loadu_ps(p); }
VEC_INLINE void vst(float *p, vf a) { _mm256_storeu_ps(p, a); }
VEC_INLINE vf vadd(vf a, vf b) { return _mm256_add_ps(a, b); }
VEC_INLINE vf vsub(vf a, vf b) { return _mm256_sub_ps(a, b); }
VEC_INLINE vf vmul(vf a, vf b) { return _mm256_mul_ps(a, b); }
VEC_INLINE vf vdiv(vf a, vf b) { return _mm256_div_ps(a, b); }
VEC_INLINE vf vfma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
VEC_INLINE vf vfnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); } /* c - a b */
VEC_INLINE vf vmax(vf a, vf b) { return _mm256_max_ps(a, b); }
VEC_INLINE vf vmin(vf a, vf b) { return _mm256_min_ps(a, b); }
VEC_INLINE vf vabs(vf a) { return _mm256_andnot_ps(v1(-0.0f), a); }
/* a where x < 0 or x is -0, b elsewhere. */
VEC_INLINE vf vsel_neg(vf x, vf a, vf b) { return _mm256_blendv_ps(b, a, x); }
/* a where x < y, b elsewhere and where either is a NaN. */
VEC_INLINE vf vsel_lt(vf x, vf y, vf a, vf b)
{
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, y, _CMP_LT_OQ));
}

/* The first n lanes, 0 <= n <= VL. */
typedef __m256i vmask;
VEC_INLINE vmask vfirst(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
/* The lanes whose bit is set, the first the lowest. */
VEC_INLINE vmask vlanes(uint64_t bits)
{
    const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)(bits & 255)), each), each);
}
VEC_INLINE vf vld_m(const float *p, vmask m, vf fill)
{
    return _mm256_blendv_ps(fill, _mm256_maskload_ps(p, m), _mm256_castsi256_ps(m));
}
VEC_INLINE void vst_m(float *p, vmask m, vf a) { _mm256_maskstore_ps(p, m, a); }
/* a b in the lanes of m, a in the others. */
VEC_INLINE vf vmul_m(vf a, vmask m, vf b)
{
    return _mm256_blendv_ps(a, vmul(a, b), _mm256_castsi256_ps(m));
}

VEC_INLINE float vsum(vf a)
{
    __m128 h = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    h = _mm_add_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_add_ss(h, _mm_movehdup_ps(h)));
}
VEC_INLINE float vmax_lanes(vf a)
{
    __m128 h = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    h = _mm_max_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_max_ss(h, _mm_movehdup_ps(h)));
}

/* Lane i of the result is vsum(r[i]), added in the same order. */
VEC_INLINE vf vsums(const vf r[VL])
{
    vf u[4], w[2];

    UNROLL
    for (int i = 0; i < 4; i++)
        u[i] = vadd(_mm256_permute2f128_ps(r[i], r[4 + i], 0x20),
                    _mm256_permute2f128_ps(r[i], r[4 + i], 0x31));
    UNROLL
    for (int i = 0; i < 2; i++) {
        const __m256d a = _mm256_castps_pd(u[2 * i]), b = _mm256_castps_pd(u[2 * i + 1]);
        w[i] = vadd(_mm256_castpd_ps(_mm256_unpacklo_pd(a, b)),
                    _mm256_castpd_ps(_mm256_unpackhi_pd(a, b)));
    }
    return vadd(_mm256_shuffle_ps(w[0], w[1], 0x88), _mm256_shuffle_ps(w[0], w[1], 0xdd));
}

/* x rounded to the nearest integer, and 2^n a for such an n in [-127, 127], 0 for -127: adding
 * 1.5 * 2^23 + 127 leaves the biased exponent in the low bits. */
VEC_INLINE vf vround(vf x) { return _mm256_round_ps(x, 8 /* nearest, quiet */); }
VEC_INLINE vf vscale2(vf a, vf n)
{
    const __m256i bits = _mm256_castps_si256(vadd(n, v1(0x1.8000fep+23f)));
    return vmul(a, _mm256_castsi256_ps(_mm256_slli_epi32(bits, 23)));
}

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

/* r[i][j] <-> r[j][i]: pairs, then quads inside 128-bit lanes, then the lanes themselves. */
VEC_INLINE void vtranspose(vf r[VL])
{
    vf t[VL];

    UNROLL
    for (int i = 0; i < 8; i += 4) {
        const __m256d lo01 = _mm256_castps_pd(_mm256_unpacklo_ps(r[i], r[i + 1]));
        const __m256d hi01 = _mm256_castps_pd(_mm256_unpackhi_ps(r[i], r[i + 1]));
        const __m256d lo23 = _mm256_castps_pd(_mm256_unpacklo_ps(r[i + 2], r[i + 3]));
        const __m256d hi23 = _mm256_castps_pd(_mm256_unpackhi_ps(r[i + 2], r[i + 3]));
        t[i] = _mm256_castpd_ps(_mm256_unpacklo_pd(lo01, lo23));
        t[i + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(lo01, lo23));
        t[i + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(hi01, hi23));
        t[i + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(hi01, hi23));
    }
    UNROLL
    for (int c = 0; c < 4; c++) {
        r[c] = _mm256_permute2f128_ps(t[c], t[4 + c], 0x20);
        r[4 + c] = _mm256_permute2f128_ps(t[c], t[4 + c], 0x31);
    }
}

#else
#error "define VEC_AVX2 or VEC_AVX512 before including vec.h"
#endif

/* Common to both instruction sets. */

/* Fetch the lines of n floats, which may be read soon, into L2. */
VEC_INLINE void vprefetch(const float *p, int n)
{
    for (int i = 0; i < n; i += 16)
        _mm_prefetch((const char *)(p + i), _MM_HINT_T1);
}
/* Into L1. */
VEC_INLINE void vprefetch_l1(const float *p, int n)
{
    for (int i = 0; i < n; i += 16)
        _mm_prefetch((const char *)(p + i), _MM_HINT_T0);
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

#endif
