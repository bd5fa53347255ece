/* SPDX-License-Identifier: MIT
 *
 * The functions of vec.h with 256-bit vectors. */
#ifndef VEC_AVX2_H
#define VEC_AVX2_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

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

/* ---- narrower element types, see narrow.h --------------------------------------------------- */

VEC_INLINE vf vbf16(vf x)
{
    const __m256i bits = _mm256_castps_si256(x), exponent = _mm256_set1_epi32(0x7f800000);
    const __m256i upper = _mm256_set1_epi32((int)0xffff0000);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i even = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i sign = _mm256_and_si256(bits, _mm256_set1_epi32((int)0x80000000));
    const __m256i small =
        _mm256_cmpeq_epi32(_mm256_and_si256(bits, exponent), _mm256_setzero_si256());
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    __m256i to = _mm256_blendv_epi8(even, quiet, nan);

    to = _mm256_blendv_epi8(to, sign, small);
    return _mm256_castsi256_ps(_mm256_and_si256(to, upper));
}
VEC_INLINE vf widened(__m128i halves)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}
VEC_INLINE vf vld_bf16(const uint16_t *p) { return widened(_mm_loadu_si128((const void *)p)); }
VEC_INLINE vf vld_bf16_n(const uint16_t *p, int n)
{
    uint16_t some[VL] = {0};

    memcpy(some, p, sizeof(*p) * (size_t)n);
    return vld_bf16(some);
}
VEC_INLINE vf vld_int8(const int8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)p)));
}
VEC_INLINE vf vld_int8_n(const int8_t *p, int n)
{
    int8_t some[VL] = {0};

    memcpy(some, p, (size_t)n);
    return vld_int8(some);
}

#endif
