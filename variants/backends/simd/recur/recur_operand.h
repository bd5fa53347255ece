/* SPDX-License-Identifier: MIT
 *
 * Operands of a recurrence in vectors, as its products take them. Included once per instruction
 * set. */
#pragma once

#include "variants/backends/recur.h"
#include "variants/backends/simd/narrow.h"

/* Up to VL numbers of q, k, v, a or b, 0 behind the last. */
VEC_INLINE vf operand(const struct recur *r, const float *x, int left)
{
    const vf y = vld_upto(x, left, v0());

    return r->bf16 ? vbf16(y) : y;
}
