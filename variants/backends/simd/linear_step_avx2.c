/* SPDX-License-Identifier: MIT
 *
 * The step of linear_step.inc.c compiled for AVX2. */
#define VEC_AVX2
#include "linear_step.inc.c"

void linear_step_avx2(const struct linear_step *p) { linear_step(p); }
