/* SPDX-License-Identifier: MIT
 *
 * The step of linear_step.inc.c compiled for AVX-512. */
#define VEC_AVX512
#include "linear_step.inc.c"

void linear_step_avx512(const struct linear_step *p) { linear_step(p); }
