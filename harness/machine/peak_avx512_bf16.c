/* SPDX-License-Identifier: MIT
 *
 * Peak loops with products of pairs of bf16. The upper half of a float is a bf16; the other number
 * of each pair is multiplied by 0. */
#include <immintrin.h>

#define V_BYTES 64
#define V_FLOP 4
#define V_FMA(a, b, c) _mm512_dpbf16_ps(c, (__m512bh)(a), (__m512bh)(b))
#include "peak.inc.c"

const struct peak_loops peak_loops_avx512_bf16 = PEAK_LOOPS;
