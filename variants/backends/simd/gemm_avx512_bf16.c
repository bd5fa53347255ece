/* SPDX-License-Identifier: MIT
 *
 * The dense products of gemm.inc.c with pairs of bf16, compiled for AVX512-BF16. Products of other
 * types are those of AVX-512. */
#define VEC_AVX512
#define VEC_BF16
#include "gemm.inc.c"
#include "simd.h"

void gemm_avx512_bf16(const struct gemm *g)
{
    if (g->elem == ELEM_BF16 || g->rounds)
        gemm(g);
    else
        gemm_avx512(g);
}

void gemm_act_avx512_bf16(const struct gemm *g, const struct act *epilogue)
{
    if (g->elem == ELEM_BF16 || g->rounds)
        gemm_act(g, epilogue);
    else
        gemm_act_avx512(g, epilogue);
}

void gemm_gate_avx512_bf16(const struct gemm *g, const struct gate_op *gate)
{
    if (g->elem == ELEM_BF16 || g->rounds)
        gemm_gate(g, gate);
    else
        gemm_gate_avx512(g, gate);
}

size_t gemm_room_avx512_bf16(void)
{
    const size_t of_others = gemm_room_avx512();

    return of_others > sizeof(struct room) ? of_others : sizeof(struct room);
}
