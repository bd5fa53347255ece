/* SPDX-License-Identifier: MIT
 *
 * The dense products of gemm.inc.c compiled for AVX-512. */
#define VEC_AVX512
#include "gemm.inc.c"
#include "simd.h"

void gemm_avx512(const struct gemm *g) { gemm(g); }
