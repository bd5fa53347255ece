/* SPDX-License-Identifier: MIT
 *
 * The dense products of gemm.inc.c whose rows are rounded to q8, as their weights are, compiled for
 * one instruction set. */
#define VEC_INT8
#include "gemm.inc.c"
#include "simd.h"

void AT_ISA(gemm_int8)(const struct gemm *g) { gemm(g); }

void AT_ISA(gemm_act_int8)(const struct gemm *g, const struct act *epilogue)
{
    gemm_act(g, epilogue);
}

size_t AT_ISA(gemm_room_int8)(void) { return sizeof(struct room); }

size_t AT_ISA(gemm_packed_floats_int8)(const struct gemm *like) { return gemm_packed_floats(like); }

void AT_ISA(gemm_pack_int8)(float *dst, const struct gemm *like) { gemm_pack(dst, like); }

void AT_ISA(gemm_gate_int8)(const struct gemm *g, const struct gate_op *gate)
{
    gemm_gate(g, gate);
}
