/* SPDX-License-Identifier: MIT
 *
 * The functions of vec.h with 256-bit vectors. */
#pragma once

#include <immintrin.h>

enum { VL = 8, VEC_REGISTERS = 16 };
typedef __m256 vf;
typedef __m256d vd;
typedef __m256i vi;
#define MM(op) _mm256_##op
#define MM_WHOLE(op) _mm256_##op##_si256
#define AS_INTS(x) _mm256_castps_si256(x)
#define DPBUSD _mm256_dpbusd_avx_epi32
#include "vec_x86.h"

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
    vf u[4];

    UNROLL
    for (int i = 0; i < 4; i++)
        u[i] = vadd(_mm256_permute2f128_ps(r[i], r[4 + i], 0x20),
                    _mm256_permute2f128_ps(r[i], r[4 + i], 0x31));
    return fold_quads(u);
}

/* x rounded to the nearest integer, and 2^n a for such an n in [-127, 127], 0 for -127: adding
 * 1.5 * 2^23 + 127 leaves the biased exponent in the low bits. */
VEC_INLINE vf vround(vf x) { return _mm256_round_ps(x, 8 /* nearest, quiet */); }
VEC_INLINE vf vscale2(vf a, vf n)
{
    const __m256i bits = _mm256_castps_si256(vadd(n, v1(0x1.8000fep+23f)));
    return vmul(a, _mm256_castsi256_ps(_mm256_slli_epi32(bits, 23)));
}

/* r[i][j] <-> r[j][i]: inside 128-bit lanes, then the lanes themselves. */
VEC_INLINE void vtranspose(vf r[VL])
{
    vf t[VL];

    transpose_quads(t, r);
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

VEC_INLINE vf vld_int4(const uint8_t *p, bool upper)
{
    const __m256i q = _mm256_cvtepu8_epi32(halves_of(_mm_loadl_epi64((const void *)p), upper));

    return _mm256_cvtepi32_ps(_mm256_sub_epi32(q, _mm256_set1_epi32(8)));
}

#if defined(VEC_INT8)
/* The numbers of lo, then those of hi, to the nearest integers. */
VEC_INLINE vf vpairs(vf lo, vf hi)
{
    const __m256i mixed = _mm256_packs_epi32(_mm256_cvtps_epi32(lo), _mm256_cvtps_epi32(hi));

    return _mm256_castsi256_ps(_mm256_permute4x64_epi64(mixed, 0xd8));
}
/* Pairs as 2 VL int8. */
VEC_INLINE void vst_int8(int8_t *p, vf pairs)
{
    const __m256i all = _mm256_castps_si256(pairs);

    _mm_storeu_si128(
        (void *)p, _mm_packs_epi16(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1)));
}

/* A block of 32 int8, and the products of two in VL sums. Sums of two products, the first without
 * its sign, are below 2^15: no number of b, which takes that sign, is -128. One of a may be. */
typedef vi vb;
VEC_INLINE vb vld_block(const int8_t *q) { return _mm256_loadu_si256((const void *)q); }
VEC_INLINE vb vld_block4(const uint8_t *q)
{
    const __m128i both = _mm_loadu_si128((const void *)q);
    const __m256i all = _mm256_set_m128i(halves_of(both, true), halves_of(both, false));

    return _mm256_sub_epi8(all, _mm256_set1_epi8(8));
}
VEC_INLINE void vblock_pairs(vf to[2], vb b)
{
    to[0] = _mm256_castsi256_ps(_mm256_cvtepi8_epi16(_mm256_castsi256_si128(b)));
    to[1] = _mm256_castsi256_ps(_mm256_cvtepi8_epi16(_mm256_extracti128_si256(b, 1)));
}
VEC_INLINE vf vdot_block(vb a, vb b)
{
    const __m256i twos = _mm256_maddubs_epi16(_mm256_abs_epi8(a), _mm256_sign_epi8(b, a));

    return _mm256_cvtepi32_ps(_mm256_madd_epi16(twos, _mm256_set1_epi16(1)));
}

#if defined(VEC_DOT4)
/* A block of 32 numbers plus DOT4_ZERO, and its scale. Wider vectors hold `then` as well. */
VEC_INLINE vf vquads8(const int8_t *p, const int8_t *then)
{
    return _mm256_castsi256_ps(_mm256_xor_si256(vild(p), _mm256_set1_epi8(-128)));
}
VEC_INLINE vf v1_halves(const float *p, const float *then) { return v1(*p); }
/* The sum of all numbers of pairs. */
VEC_INLINE int32_t vsum_pairs(vf pairs)
{
    const __m256i twos = _mm256_madd_epi16(_mm256_castps_si256(pairs), _mm256_set1_epi16(1));
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(twos), _mm256_extracti128_si256(twos, 1));

    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
    return _mm_cvtsi128_si32(sum) + _mm_extract_epi32(sum, 1);
}
#endif
/* The numbers of two blocks of q4 or q4_1 that follow each other, 16 bytes of each, as they are
 * stored. */
VEC_INLINE vb vld_nibbles(enum elem elem, const void *w)
{
    return _mm256_loadu2_m128i((const void *)q4_at(elem, w, 1)->q,
                               (const void *)q4_at(elem, w, 0)->q);
}
/* Two numbers, each in four lanes. */
VEC_INLINE vf v1_each(const float *p, const float *then)
{
    return _mm256_blend_ps(_mm256_broadcast_ss(p), _mm256_broadcast_ss(then), 0xf0);
}
/* Scales of those blocks, and shifts of q4_1, each in four lanes. */
VEC_INLINE vf vld_nibble_scales(enum elem elem, const void *w)
{
    return v1_each(&q4_at(elem, w, 0)->scale, &q4_at(elem, w, 1)->scale);
}
VEC_INLINE vf vld_nibble_shifts(const struct q4_1_block w[2])
{
    return v1_each(&w[0].shift, &w[1].shift);
}
#endif
