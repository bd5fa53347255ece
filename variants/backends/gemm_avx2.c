/* SPDX-License-Identifier: MIT
 *
 * The dense products of gemm.inc.c compiled for AVX2. */
#define VEC_AVX2
#include "gemm.inc.c"
#include "simd.h"

void gemm_avx2(const struct gemm *g) { gemm(g); }
