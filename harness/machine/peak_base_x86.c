/* SPDX-License-Identifier: MIT
 *
 * Peak loops with baseline x86-64: 128-bit multiply, then add. */
#include <emmintrin.h>

#define VF __m128
#define VI __m128i
#define V_ONE(x) _mm_set1_ps(x)
#define V_FMA(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)
#define V_STORE_F(p, v) _mm_storeu_ps(p, v)
#define V_ZERO() _mm_setzero_si128()
#define V_LOAD(p) _mm_load_si128((const __m128i *)(p))
#define V_OR(a, b) _mm_or_si128(a, b)
#define V_STORE_I(p, v) _mm_storeu_si128((__m128i *)(p), v)
#include "peak.inc.c"

const struct peak_loops peak_loops_base = PEAK_LOOPS;
