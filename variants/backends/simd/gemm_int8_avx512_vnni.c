/* SPDX-License-Identifier: MIT
 *
 * The products of gemm_int8.isa.c compiled for AVX512-VNNI, which multiplies four int8 a lane. */
#define VEC_AVX512
#define VEC_INT8
#define VEC_VNNI
#include "gemm.inc.c"
#include "simd.h"

void gemm_int8_avx512_vnni(const struct gemm *g) { gemm(g); }

void gemm_act_int8_avx512_vnni(const struct gemm *g, const struct act *epilogue)
{
    gemm_act(g, epilogue);
}

void gemm_gate_int8_avx512_vnni(const struct gemm *g, const struct gate_op *gate)
{
    gemm_gate(g, gate);
}

size_t gemm_packed_floats_int8_avx512_vnni(const struct gemm *like)
{
    return gemm_packed_floats(like);
}

void gemm_pack_int8_avx512_vnni(float *dst, const struct gemm *like) { gemm_pack(dst, like); }
