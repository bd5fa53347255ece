/* SPDX-License-Identifier: MIT
 *
 * The dense products of gemm.inc.c compiled for one instruction set. */
#include "gemm.inc.c"
#include "simd.h"

/* Products of rows of q8: by the instruction that multiplies four int8, where this CPU has it; in
 * tiles, where it has these. */
#if defined(VEC_AVX512)
#define LEVEL ISA_AVX512
#define DOT4(name) (cpu_isa() < ISA_AMX_BF16 ? name##_avx512_vnni : name##_amx_int8)
/* Few rows are multiplied in vectors. */
#define DOT4_BY (cpu_isa() < ISA_AMX_BF16 ? "vpdpbusd" : "tdpbsud+vpdpbusd")
#define PAIRS_BY "vpmaddwd"
#elif defined(VEC_AVX2)
#define LEVEL ISA_AVX2
#define DOT4(name) name##_avx_vnni
#define DOT4_BY "vpdpbusd"
#define PAIRS_BY "vpmaddwd"
#else
#define LEVEL ISA_NEON
#define DOT4(name) name##_neon_dot
#define DOT4_BY "sdot"
#define PAIRS_BY "smull"
#endif
#define INT8(name) (cpu_has_dot4(LEVEL) ? DOT4(name##_int8) : AT_ISA(name##_int8))

void AT_ISA(gemm)(const struct gemm *g)
{
    if (g->quantises)
        INT8(gemm)(g);
    else
        gemm(g);
}

void AT_ISA(gemm_act)(const struct gemm *g, const struct act *epilogue)
{
    if (g->quantises)
        INT8(gemm_act)(g, epilogue);
    else
        gemm_act(g, epilogue);
}

void AT_ISA(gemm_gate)(const struct gemm *g, const struct gate_op *gate)
{
    if (g->quantises)
        INT8(gemm_gate)(g, gate);
    else
        gemm_gate(g, gate);
}

size_t AT_ISA(gemm_room)(void)
{
    const size_t of_int8 = INT8(gemm_room)();

    return of_int8 > sizeof(struct room) ? of_int8 : sizeof(struct room);
}

size_t AT_ISA(gemm_packed_floats)(const struct gemm *like)
{
    return like->quantises ? INT8(gemm_packed_floats)(like) : gemm_packed_floats(like);
}

void AT_ISA(gemm_pack)(float *dst, const struct gemm *like)
{
    if (like->quantises)
        INT8(gemm_pack)(dst, like);
    else
        gemm_pack(dst, like);
}

const char *AT_ISA(int8_by)(void) { return cpu_has_dot4(LEVEL) ? DOT4_BY : PAIRS_BY; }
