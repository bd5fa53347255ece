/* SPDX-License-Identifier: MIT
 *
 * The loops whose rates are peaks of NEON, on vectors of 128 bits; peak.inc.c has them for all
 * vectors. */
#include <arm_neon.h>

#define VF float32x4_t
#define VI uint32x4_t
#define V_ONE(x) vdupq_n_f32(x)
#define V_FMA(a, b, c) vfmaq_f32(c, a, b)
#define V_STORE_F(p, v) vst1q_f32(p, v)
#define V_ZERO() vdupq_n_u32(0)
#define V_LOAD(p) vld1q_u32((const uint32_t *)(p))
#define V_OR(a, b) vorrq_u32(a, b)
#define V_STORE_I(p, v) vst1q_u32((uint32_t *)(p), v)
#include "peak.inc.c"

const struct peak_loops peak_loops_neon = PEAK_LOOPS;
