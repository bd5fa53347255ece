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
