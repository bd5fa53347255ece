/* SPDX-License-Identifier: MIT
 *
 * The functions of vec.h with 512-bit vectors, and with VEC_BF16 products of pairs of bf16. */
#pragma once

#include <immintrin.h>

enum { VL = 16, VEC_REGISTERS = 32 };
typedef __m512 vf;
typedef __m512d vd;
typedef __m512i vi;
#define MM(op) _mm512_##op
#define MM_WHOLE(op) _mm512_##op##_si512
#define AS_INTS(x) _mm512_castps_si512(x)
#define DPBUSD _mm512_dpbusd_epi32
#include "vec_x86.h"

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
    vf t[8], u[4];

    UNROLL
    for (int i = 0; i < 8; i++) {
        const vf a = r[i + (i & 4)], b = r[i + (i & 4) + 4];
        t[i] = vadd(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    }
    UNROLL
    for (int i = 0; i < 4; i++) /* lanes of 4 floats: rows i, 4 + i, 8 + i, 12 + i */
        u[i] = vadd(_mm512_shuffle_f32x4(t[i], t[4 + i], 0x88),
                    _mm512_shuffle_f32x4(t[i], t[4 + i], 0xdd));
    return fold_quads(u);
}

/* x rounded to the nearest integer, and 2^n a for such an n. */
VEC_INLINE vf vround(vf x) { return _mm512_roundscale_ps(x, 8 /* nearest, quiet */); }
VEC_INLINE vf vscale2(vf a, vf n) { return _mm512_scalef_ps(a, n); }

#define VEC_EXP2 /* by instructions that others lack */
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

/* r[i][j] <-> r[j][i]: inside 128-bit lanes, then the lanes themselves. */
VEC_INLINE void vtranspose(vf r[VL])
{
    vf t[VL];

    transpose_quads(t, r);
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

/* ---- narrower element types, see narrow.h --------------------------------------------------- */

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
#endif

VEC_INLINE vf vld_int4(const uint8_t *p, bool upper)
{
    const vf numbers = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    const __m512i both = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p));

    /* Of an index the lowest four bits count. */
    return _mm512_permutexvar_ps(upper ? _mm512_srli_epi32(both, 4) : both, numbers);
}

#if defined(VEC_INT8)
VEC_INLINE vf vpairs(vf lo, vf hi)
{
    const __m256i first = _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(lo));
    const __m256i then = _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(hi));

    return _mm512_castsi512_ps(_mm512_inserti64x4(_mm512_castsi256_si512(first), then, 1));
}
VEC_INLINE void vst_int8(int8_t *p, vf pairs)
{
    _mm256_storeu_si256((void *)p, _mm512_cvtsepi16_epi8(_mm512_castps_si512(pairs)));
}

typedef vi vb; /* as int16 */
VEC_INLINE vb vld_block(const int8_t *q)
{
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const void *)q));
}
VEC_INLINE vb vld_block4(const uint8_t *q)
{
    const __m128i both = _mm_loadu_si128((const void *)q);
    const __m256i all = _mm256_set_m128i(halves_of(both, true), halves_of(both, false));

    return _mm512_cvtepi8_epi16(_mm256_sub_epi8(all, _mm256_set1_epi8(8)));
}
#if defined(VEC_DOT4)
/* Two blocks of 32 numbers plus DOT4_ZERO. */
VEC_INLINE vf vquads8(const int8_t *p, const int8_t *then)
{
    const __m512i first = _mm512_castsi256_si512(_mm256_loadu_si256((const void *)p));
    const __m512i both = _mm512_inserti64x4(first, _mm256_loadu_si256((const void *)then), 1);

    return _mm512_castsi512_ps(_mm512_xor_si512(both, _mm512_set1_epi8(-128)));
}
/* Their scales, each in half of the lanes. */
VEC_INLINE vf v1_halves(const float *p, const float *then)
{
    return _mm512_mask_broadcastss_ps(_mm512_set1_ps(*p), 0xff00, _mm_load_ss(then));
}
VEC_INLINE int32_t vsum_pairs(vf pairs)
{
    return _mm512_reduce_add_epi32(
        _mm512_madd_epi16(_mm512_castps_si512(pairs), _mm512_set1_epi16(1)));
}
#endif
/* The numbers of four blocks of q4 or q4_1 that follow each other, 16 bytes of each, as they are
 * stored: of 20 words, or of 24. */
VEC_INLINE vb vld_nibbles(enum elem elem, const void *w)
{
    const uint32_t *const words = w;
    const bool more = elem == ELEM_Q4_1;
    const __m512i at =
        more ? _mm512_setr_epi32(1, 2, 3, 4, 7, 8, 9, 10, 21, 22, 23, 24, 27, 28, 29, 30)
             : _mm512_setr_epi32(1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14, 28, 29, 30, 31);

    return _mm512_permutex2var_epi32(_mm512_loadu_si512(words), at,
                                     _mm512_loadu_si512(words + (more ? 8 : 4)));
}
/* Their scales, and shifts of q4_1, each in four lanes. */
VEC_INLINE vf vld_nibble_scales(enum elem elem, const void *w)
{
    const __m512i at = _mm512_setr_epi32(0, 0, 0, 0, 5, 5, 5, 5, 10, 10, 10, 10, 15, 15, 15, 15);
    const __m512i of_24 = _mm512_setr_epi32(0, 0, 0, 0, 6, 6, 6, 6, 12, 12, 12, 12, 26, 26, 26, 26);

    return elem == ELEM_Q4_1 ? _mm512_permutex2var_ps(_mm512_loadu_ps(w), of_24,
                                                      _mm512_loadu_ps((const float *)w + 8))
                             : _mm512_permutexvar_ps(at, _mm512_loadu_ps(w));
}
VEC_INLINE vf vld_nibble_shifts(const struct q4_1_block w[4])
{
    const __m512i at =
        _mm512_setr_epi32(5, 5, 5, 5, 11, 11, 11, 11, 25, 25, 25, 25, 31, 31, 31, 31);
    const float *const words = (const float *)(const void *)w;

    return _mm512_permutex2var_ps(_mm512_loadu_ps(words), at, _mm512_loadu_ps(words + 8));
}
VEC_INLINE void vblock_pairs(vf to[1], vb b) { to[0] = _mm512_castsi512_ps(b); }
VEC_INLINE vf vdot_block(vb a, vb b) { return _mm512_cvtepi32_ps(_mm512_madd_epi16(a, b)); }
#endif
