/* SPDX-License-Identifier: MIT
 *
 * The gradients in rows_grad.inc.c and acts_grad.inc.c compiled for AVX2. */
#define VEC_AVX2
#include "acts_grad.inc.c"
#include "rows_grad.inc.c"
#include "simd.h"

void softmax_grad_avx2(const struct softmax_grad *o) { softmax_grad(o); }
void norm_grad_avx2(const struct norm_grad *o) { norm_grad(o); }
void act_grad_avx2(const struct act_grad *o) { act_grad(o); }
void glu_grad_avx2(const struct glu_grad *o) { glu_grad(o); }
void gate_grad_avx2(const struct gate_grad *o) { gate_grad(o); }
void nll_grad_avx2(const struct nll_grad *o) { nll_grad(o); }
