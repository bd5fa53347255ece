/* SPDX-License-Identifier: MIT
 *
 * The loops whose rates are peaks of AVX2, on vectors of 256 bits; peak.inc.c has them for all
 * vectors. */
#include <immintrin.h>

#define VF __m256
#define VI __m256i
#define V_ONE(x) _mm256_set1_ps(x)
#define V_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define V_STORE_F(p, v) _mm256_storeu_ps(p, v)
#define V_ZERO() _mm256_setzero_si256()
#define V_LOAD(p) _mm256_load_si256((const __m256i *)(p))
#define V_OR(a, b) _mm256_or_si256(a, b)
#define V_STORE_I(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#include "peak.inc.c"

const struct peak_loops peak_loops_avx2 = PEAK_LOOPS;
