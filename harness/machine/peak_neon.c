/* SPDX-License-Identifier: MIT
 *
 * The loops whose rates are peaks of NEON, on vectors of 128 bits; peak.inc.c has them for all
 * vectors. */
#include <arm_neon.h>

#define V_BYTES 16
#define V_FMA(a, b, c) vfmaq_f32(c, a, b)
#include "peak.inc.c"

const struct peak_loops peak_loops_neon = PEAK_LOOPS;
