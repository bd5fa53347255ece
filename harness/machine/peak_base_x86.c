/* SPDX-License-Identifier: MIT
 *
 * Peak loops with baseline x86-64: 128-bit multiply, then add. */
#include <emmintrin.h>

#define V_BYTES 16
#define V_FMA(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)
#include "peak.inc.c"

const struct peak_loops peak_loops_base = PEAK_LOOPS;
