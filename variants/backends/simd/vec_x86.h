/* SPDX-License-Identifier: MIT
 *
 * What vec_avx2.h and vec_avx512.h have in common: MM(op) is an instruction of their width, MM_WHOLE(op)
 * one whose name repeats it, DPBUSD that of sums of four products. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

VEC_INLINE vf v1(float x) { return MM(set1_ps)(x); }
VEC_INLINE vf v0(void) { return MM(setzero_ps)(); }
VEC_INLINE vf vld(const float *p) { return MM(loadu_ps)(p); }
VEC_INLINE void vst(float *p, vf a) { MM(storeu_ps)(p, a); }
VEC_INLINE vf vadd(vf a, vf b) { return MM(add_ps)(a, b); }
VEC_INLINE vf vsub(vf a, vf b) { return MM(sub_ps)(a, b); }
VEC_INLINE vf vmul(vf a, vf b) { return MM(mul_ps)(a, b); }
VEC_INLINE vf vdiv(vf a, vf b) { return MM(div_ps)(a, b); }
VEC_INLINE vf vfma(vf a, vf b, vf c) { return MM(fmadd_ps)(a, b, c); }
VEC_INLINE vf vfnma(vf a, vf b, vf c) { return MM(fnmadd_ps)(a, b, c); } /* c - a b */
VEC_INLINE vf vmax(vf a, vf b) { return MM(max_ps)(a, b); }
VEC_INLINE vf vmin(vf a, vf b) { return MM(min_ps)(a, b); }

/* The last steps of vsums: inside 128-bit lanes. */
VEC_INLINE vf fold_quads(const vf u[4])
{
    vf w[2];

    UNROLL
    for (int i = 0; i < 2; i++) {
        const vd a = MM(castps_pd)(u[2 * i]), b = MM(castps_pd)(u[2 * i + 1]);
        w[i] = vadd(MM(castpd_ps)(MM(unpacklo_pd)(a, b)), MM(castpd_ps)(MM(unpackhi_pd)(a, b)));
    }
    return vadd(MM(shuffle_ps)(w[0], w[1], 0x88), MM(shuffle_ps)(w[0], w[1], 0xdd));
}

/* The first steps of vtranspose: pairs, then quads inside 128-bit lanes. */
VEC_INLINE void transpose_quads(vf t[VL], const vf r[VL])
{
    UNROLL
    for (int i = 0; i < VL; i += 4) {
        const vd lo01 = MM(castps_pd)(MM(unpacklo_ps)(r[i], r[i + 1]));
        const vd hi01 = MM(castps_pd)(MM(unpackhi_ps)(r[i], r[i + 1]));
        const vd lo23 = MM(castps_pd)(MM(unpacklo_ps)(r[i + 2], r[i + 3]));
        const vd hi23 = MM(castps_pd)(MM(unpackhi_ps)(r[i + 2], r[i + 3]));
        t[i] = MM(castpd_ps)(MM(unpacklo_pd)(lo01, lo23));
        t[i + 1] = MM(castpd_ps)(MM(unpackhi_pd)(lo01, lo23));
        t[i + 2] = MM(castpd_ps)(MM(unpacklo_pd)(hi01, hi23));
        t[i + 3] = MM(castpd_ps)(MM(unpackhi_pd)(hi01, hi23));
    }
}

/* Halves of bytes, the upper or the lower. */
VEC_INLINE __m128i halves_of(__m128i bytes, bool upper)
{
    return _mm_and_si128(upper ? _mm_srli_epi16(bytes, 4) : bytes, _mm_set1_epi8(15));
}

#if defined(VEC_INT8)
/* Pairs of int16 lie in the lanes of vf, the first in the lower half, and no arithmetic on floats
 * touches them; vi are sums of their products. */
VEC_INLINE vi vi0(void) { return MM_WHOLE(setzero)(); }
VEC_INLINE vi vild(const void *p) { return MM_WHOLE(loadu)(p); }
VEC_INLINE vf vfloats(vi a) { return MM(cvtepi32_ps)(a); }
/* acc + both products of each pair. */
VEC_INLINE vi vmadd(vi acc, vf a, vf b)
{
    return MM(add_epi32)(acc, MM(madd_epi16)(AS_INTS(a), AS_INTS(b)));
}
#if defined(VEC_DOT4)
/* Sums of four products, of unsigned with signed int8; what makes a weight of q8 unsigned. */
enum { DOT4_ZERO = 128 };
VEC_INLINE vi vi1(const float *p) { return AS_INTS(v1(*p)); }
VEC_INLINE vi vdot4(vi acc, vf a, vi b) { return DPBUSD(acc, AS_INTS(a), b); }
#endif
/* acc + sums of products: of the lower halves of bytes with `lower`, of the upper with `upper`. The
 * sums of four that fit in int16 are below 4 * 15 * 127. */
VEC_INLINE vi vdot_nibbles(vi acc, vi both, const int8_t lower[4 * VL], const int8_t upper[4 * VL])
{
    const vi fifteen = MM(set1_epi8)(15), lo = MM_WHOLE(and)(both, fifteen);
    const vi hi = MM_WHOLE(and)(MM(srli_epi16)(both, 4), fifteen);

#if defined(VEC_DOT4)
    return DPBUSD(DPBUSD(acc, lo, vild(lower)), hi, vild(upper));
#else
    const vi sums =
        MM(add_epi16)(MM(maddubs_epi16)(lo, vild(lower)), MM(maddubs_epi16)(hi, vild(upper)));

    return MM(add_epi32)(acc, MM(madd_epi16)(sums, MM(set1_epi16)(1)));
#endif
}
#endif
