/* SPDX-License-Identifier: MIT
 *
 * The row operations of rows.inc.c compiled for AVX2. */
#define VEC_AVX2
#include "rows.inc.c"
#include "simd.h"

void softmax_avx2(const struct softmax *o) { softmax(o); }
void norm_avx2(const struct norm *o) { norm(o); }
void act_avx2(const struct act *o) { act(o); }
void glu_avx2(const struct glu *o) { glu(o); }
void gate_avx2(const struct gate_op *o) { gate(o); }
void nll_avx2(const struct nll_op *o) { nll(o); }
