/* SPDX-License-Identifier: MIT
 *
 * The loops whose rates are peaks of AVX-512, on vectors of 512 bits; peak.inc.c has them for
 * all vectors. */
#include <immintrin.h>

#define V_BYTES 64
#define V_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#include "peak.inc.c"

const struct peak_loops peak_loops_avx512 = PEAK_LOOPS;
