/* SPDX-License-Identifier: MIT
 *
 * The dense products of gemm.inc.c with pairs of bf16, compiled for what multiplies them: AVX512-BF16
 * or the tiles of AMX. Products of other types are those of AVX-512. */
#define VEC_AVX512
#define VEC_BF16
#include "gemm.inc.c"
#include "simd.h"

void AT_ISA(gemm)(const struct gemm *g)
{
    if (g->elem == ELEM_BF16 || g->rounds)
        gemm(g);
    else
        gemm_avx512(g);
}

void AT_ISA(gemm_act)(const struct gemm *g, const struct act *epilogue)
{
    if (g->elem == ELEM_BF16 || g->rounds)
        gemm_act(g, epilogue);
    else
        gemm_act_avx512(g, epilogue);
}

void AT_ISA(gemm_gate)(const struct gemm *g, const struct gate_op *gate)
{
    if (g->elem == ELEM_BF16 || g->rounds)
        gemm_gate(g, gate);
    else
        gemm_gate_avx512(g, gate);
}

size_t AT_ISA(gemm_room)(void)
{
    const size_t of_others = gemm_room_avx512();

    return of_others > sizeof(struct room) ? of_others : sizeof(struct room);
}
