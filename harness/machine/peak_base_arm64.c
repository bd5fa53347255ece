/* SPDX-License-Identifier: MIT
 *
 * Peak loops with baseline arm64: 128-bit multiply, then add. */
#include <arm_neon.h>

#define V_BYTES 16
#define V_FMA(a, b, c) vaddq_f32(vmulq_f32(a, b), c)
#include "peak.inc.c"

const struct peak_loops peak_loops_base = PEAK_LOOPS;
