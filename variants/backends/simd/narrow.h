/* SPDX-License-Identifier: MIT
 *
 * Narrower element types in vectors of floats: rounding and widening as variants/base/elem.h says,
 * bit for bit. Included after vec.h, once per instruction set. With VEC_BF16 (and VEC_AVX512),
 * pairs of bf16 lie in the lanes of vf, the first in the lower half, and are multiplied as such; no
 * arithmetic on floats touches them. */
#ifndef NARROW_H
#define NARROW_H

#include "variants/base/elem.h"
#include "vec.h"

/* Numbers in a lane of an operand: one float, or with VEC_BF16 a pair of bf16. */
#if defined(VEC_BF16)
enum { PER_LANE = 2 };
#else
enum { PER_LANE = 1 };
#endif
VEC_INLINE int lanes_for(int n) { return (n + PER_LANE - 1) / PER_LANE; }

#if defined(VEC_AVX512)

/* x rounded to bf16, as floats. */
VEC_INLINE vf vbf16(vf x)
{
    const __m512i bits = _mm512_castps_si512(x), exponent = _mm512_set1_epi32(0x7f800000);
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i to = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);

    to = _mm512_mask_or_epi32(to, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), bits,
                              _mm512_set1_epi32(0x400000));
    to = _mm512_mask_and_epi32(to, _mm512_testn_epi32_mask(bits, exponent), bits,
                               _mm512_set1_epi32((int)0x80000000));
    return _mm512_castsi512_ps(_mm512_and_si512(to, upper));
}
VEC_INLINE vf widened(__m256i halves)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}
VEC_INLINE vf vld_bf16(const uint16_t *p) { return widened(_mm256_loadu_si256((const void *)p)); }
VEC_INLINE vf vld_bf16_n(const uint16_t *p, int n)
{
    return widened(_mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1u), p));
}
VEC_INLINE vf vld_int8(const int8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)p)));
}
VEC_INLINE vf vld_int8_n(const int8_t *p, int n)
{
    const __m128i some = _mm_maskz_loadu_epi8((__mmask16)((1u << n) - 1u), p);

    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(some));
}

#if defined(VEC_BF16)
/* The numbers of lo, then those of hi, rounded. */
VEC_INLINE vf vpairs(vf lo, vf hi) { return (vf)_mm512_cvtne2ps_pbh(hi, lo); }
/* Pairs (lo[i], hi[i]) of bf16, from the numbers of lo, then those of hi. */
VEC_INLINE vf vzip_pairs(vf x)
{
    static const uint16_t at[2 * VL] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                        21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                        11, 27, 12, 28, 13, 29, 14, 30, 15, 31};

    return (vf)_mm512_permutexvar_epi16(_mm512_loadu_si512(at), (__m512i)x);
}
/* acc + both products of each pair, with two roundings, subnormals being zeros. */
VEC_INLINE vf vdot2(vf acc, vf a, vf b) { return _mm512_dpbf16_ps(acc, (__m512bh)a, (__m512bh)b); }
VEC_INLINE vf vld_pairs(const uint16_t *p) { return _mm512_loadu_ps((const void *)p); }
/* The first n numbers, 0 for the others. */
VEC_INLINE vf vld_pairs_n(const uint16_t *p, int n)
{
    const __mmask32 first = n >= 2 * VL ? ~(__mmask32)0 : ((__mmask32)1 << n) - 1;

    return _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(first, p));
}
/* n floats, rounded; pairs up to n. */
VEC_INLINE vf vpairs_n(const float *x, int n)
{
    return vpairs(vld_upto(x, n, v0()), n > VL ? vld_upto(x + VL, n - VL, v0()) : v0());
}
#endif

#else

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

/* n floats rounded to bf16 in place. */
VEC_INLINE void round_to_bf16(float *x, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i += VL) {
        const int left = n - i < VL ? (int)(n - i) : VL;
        vst_upto(x + i, left, vbf16(vld_upto(x + i, left, v0())));
    }
}

/* Numbers [first, first + n) of a narrow row as floats; for q8 `first` is the start of a block. The
 * whole of the last block is written. */
VEC_INLINE void widen(float *to, enum elem elem, const void *row, int first, int n)
{
    const uint16_t *const half = (const uint16_t *)row + first;
    const struct q8_block *const block = (const struct q8_block *)row + first / Q8_BLOCK;

    for (int i = 0; elem == ELEM_BF16 && i < n; i += VL)
        vst_upto(to + i, n - i, n - i < VL ? vld_bf16_n(half + i, n - i) : vld_bf16(half + i));
    for (int i = 0; elem == ELEM_Q8 && i < n; i += VL)
        vst(to + i,
            vmul(v1(block[i / Q8_BLOCK].scale), vld_int8(block[i / Q8_BLOCK].q + i % Q8_BLOCK)));
}

#endif
