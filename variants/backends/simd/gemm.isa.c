/* SPDX-License-Identifier: MIT
 *
 * The dense products of gemm.inc.c compiled for one instruction set. */
#include "gemm.inc.c"
#include "simd.h"

void AT_ISA(gemm)(const struct gemm *g)
{
    if (g->quantises)
        AT_ISA(gemm_int8)(g);
    else
        gemm(g);
}

void AT_ISA(gemm_act)(const struct gemm *g, const struct act *epilogue)
{
    if (g->quantises)
        AT_ISA(gemm_act_int8)(g, epilogue);
    else
        gemm_act(g, epilogue);
}

void AT_ISA(gemm_gate)(const struct gemm *g, const struct gate_op *gate)
{
    if (g->quantises)
        AT_ISA(gemm_gate_int8)(g, gate);
    else
        gemm_gate(g, gate);
}

size_t AT_ISA(gemm_packed_floats)(const struct gemm *like)
{
    return like->quantises ? AT_ISA(gemm_packed_floats_int8)(like) : gemm_packed_floats(like);
}

void AT_ISA(gemm_pack)(float *dst, const struct gemm *like)
{
    if (like->quantises)
        AT_ISA(gemm_pack_int8)(dst, like);
    else
        gemm_pack(dst, like);
}
