/* SPDX-License-Identifier: MIT
 *
 * The loops whose rates are peaks of AVX2, on vectors of 256 bits; peak.inc.c has them for all
 * vectors. */
#include <immintrin.h>

#define V_BYTES 32
#define V_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#include "peak.inc.c"

const struct peak_loops peak_loops_avx2 = PEAK_LOOPS;
