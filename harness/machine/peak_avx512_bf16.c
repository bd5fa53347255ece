/* SPDX-License-Identifier: MIT
 *
 * Peak loops with products of pairs of bf16. The upper half of a float is a bf16; the other number
 * of each pair is multiplied by 0. */
#include <immintrin.h>

#define VF __m512
#define VI __m512i
#define V_FLOP 4
#define V_ONE(x) _mm512_set1_ps(x)
#define V_FMA(a, b, c) _mm512_dpbf16_ps(c, (__m512bh)(a), (__m512bh)(b))
#define V_STORE_F(p, v) _mm512_storeu_ps(p, v)
#define V_ZERO() _mm512_setzero_si512()
#define V_LOAD(p) _mm512_load_si512(p)
#define V_OR(a, b) _mm512_or_si512(a, b)
#define V_STORE_I(p, v) _mm512_storeu_si512(p, v)
#include "peak.inc.c"

const struct peak_loops peak_loops_avx512_bf16 = PEAK_LOOPS;
