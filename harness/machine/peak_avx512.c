/* SPDX-License-Identifier: MIT
 *
 * The loops whose rates are peaks of AVX-512, on vectors of 512 bits; peak.inc.c has them for
 * all vectors. */
#include <immintrin.h>

#define VF __m512
#define VI __m512i
#define V_ONE(x) _mm512_set1_ps(x)
#define V_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define V_STORE_F(p, v) _mm512_storeu_ps(p, v)
#define V_ZERO() _mm512_setzero_si512()
#define V_LOAD(p) _mm512_load_si512(p)
#define V_OR(a, b) _mm512_or_si512(a, b)
#define V_STORE_I(p, v) _mm512_storeu_si512(p, v)
#include "peak.inc.c"

const struct peak_loops peak_loops_avx512 = PEAK_LOOPS;
