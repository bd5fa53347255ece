/* SPDX-License-Identifier: MIT
 *
 * The dense products of gemm.inc.c compiled for AVX2. */
#define VEC_AVX2
#include "gemm.inc.c"
#include "simd.h"

void gemm_avx2(const struct gemm *g) { gemm(g); }

void gemm_act_avx2(const struct gemm *g, const struct act *epilogue) { gemm_act(g, epilogue); }

void gemm_gate_avx2(const struct gemm *g, const struct gate_op *gate) { gemm_gate(g, gate); }

size_t gemm_packed_floats_avx2(const struct gemm *like) { return gemm_packed_floats(like); }

void gemm_pack_avx2(float *dst, const struct gemm *like) { gemm_pack(dst, like); }
