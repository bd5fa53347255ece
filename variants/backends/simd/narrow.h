/* SPDX-License-Identifier: MIT
 *
 * Narrower element types in vectors of floats: rounding and widening as variants/base/elem.h says,
 * bit for bit. Included after vec.h, once per instruction set. */
#ifndef NARROW_H
#define NARROW_H

#include "variants/base/elem.h"
#include "vec.h"

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
