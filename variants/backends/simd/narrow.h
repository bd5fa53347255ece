/* SPDX-License-Identifier: MIT
 *
 * Narrower element types in vectors of floats: rounding and widening as variants/base/elem.h says,
 * bit for bit. Included after vec.h, once per instruction set. With VEC_BF16 (and VEC_AVX512),
 * pairs of bf16 lie in the lanes of vf, the first in the lower half, and are multiplied as such; no
 * arithmetic on floats touches them. VEC_AMX_BF16 goes with it, for products alone. */
#pragma once

#include "vec.h"

/* Numbers in a lane of an operand: one float, or with VEC_BF16 a pair of bf16, or with VEC_INT8 a
 * pair of int16, whose blocks of 32 are PER_BLOCK lanes: the pairs, the scale, then of q4_1 the
 * shift, of rows the scaled sum that it multiplies. With VEC_DOT4 as well, four int8; rows have
 * after the scale what unsigned weights add to the sums, 8 times the sum of q4 and q4_1. */
#if defined(VEC_AMX_BF16)
enum { PER_LANE = 2, PER_BLOCK = Q8_BLOCK / PER_LANE }; /* whole tiles */
#elif defined(VEC_BF16)
enum { PER_LANE = 2, PER_BLOCK = 1 };
#elif defined(VEC_DOT4)
enum { PER_LANE = 4, BLOCK_LANES = Q8_BLOCK / PER_LANE, PER_BLOCK = BLOCK_LANES + 2 };
#elif defined(VEC_INT8)
enum { PER_LANE = 2, BLOCK_LANES = Q8_BLOCK / PER_LANE, PER_BLOCK = BLOCK_LANES + 2 };
#else
enum { PER_LANE = 1, PER_BLOCK = 1 };
#endif
VEC_INLINE int lanes_for(int n)
{
    return PER_BLOCK > 1 ? (n + Q8_BLOCK - 1) / Q8_BLOCK * PER_BLOCK
                         : (n + PER_LANE - 1) / PER_LANE;
}

#if defined(VEC_BF16)
/* n floats, rounded; pairs up to n. */
VEC_INLINE vf vpairs_n(const float *x, int n)
{
    return vpairs(vld_upto(x, n, v0()), n > VL ? vld_upto(x + VL, n - VL, v0()) : v0());
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

/* Numbers [i, i + VL) of block b of a row in blocks, without their scale. */
VEC_INLINE vf vld_of_block(enum elem elem, const void *row, int b, int i)
{
    return elem == ELEM_Q8 ? vld_int8(((const struct q8_block *)row)[b].q + i)
                           : vld_int4(q4_at(elem, row, b)->q + i % Q4_BYTES, i >= Q4_BYTES);
}
VEC_INLINE float scale_of_block(enum elem elem, const void *row, int b)
{
    return elem == ELEM_Q8 ? ((const struct q8_block *)row)[b].scale : q4_at(elem, row, b)->scale;
}
/* Those numbers with their scale and what is added. */
VEC_INLINE vf vld_widened(enum elem elem, const void *row, int b, int i)
{
    const vf q = vld_of_block(elem, row, b, i), scale = v1(scale_of_block(elem, row, b));

    return elem == ELEM_Q4_1 ? vfma(scale, q, v1(elem_shift(elem, row, b))) : vmul(scale, q);
}

VEC_INLINE void widen_blocks(float *to, enum elem elem, const void *row, int first, int n)
{
    for (int i = 0; i < n; i += VL) {
        const int b = (first + i) / Q8_BLOCK;
        vst(to + i, vld_widened(elem, row, b, i % Q8_BLOCK));
    }
}

/* Numbers [first, first + n) of a narrow row as floats; in blocks `first` is the start of one. The
 * whole of the last block is written. */
VEC_INLINE void widen(float *to, enum elem elem, const void *row, int first, int n)
{
    const uint16_t *const half = (const uint16_t *)row + first;

    for (int i = 0; elem == ELEM_BF16 && i < n; i += VL)
        vst_upto(to + i, n - i, n - i < VL ? vld_bf16_n(half + i, n - i) : vld_bf16(half + i));
    if (elem == ELEM_Q8)
        widen_blocks(to, ELEM_Q8, row, first, n);
    if (elem == ELEM_Q4)
        widen_blocks(to, ELEM_Q4, row, first, n);
    if (elem == ELEM_Q4_1)
        widen_blocks(to, ELEM_Q4_1, row, first, n);
}
