/* SPDX-License-Identifier: MIT
 *
 * The row operations of rows.inc.c compiled for AVX-512. */
#define VEC_AVX512
#include "rows.inc.c"
#include "simd.h"

void softmax_avx512(const struct softmax *o) { softmax(o); }
void norm_avx512(const struct norm *o) { norm(o); }
void act_avx512(const struct act *o) { act(o); }
void glu_avx512(const struct glu *o) { glu(o); }
void gate_avx512(const struct gate_op *o) { gate(o); }
void nll_avx512(const struct nll_op *o) { nll(o); }
