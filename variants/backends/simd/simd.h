/* SPDX-License-Identifier: MIT
 *
 * The functions of the files compiled for one instruction set each, from which simd.c assembles the
 * backends. A name ends in its instruction set; calling it on a machine without those instructions
 * faults. */
#pragma once

#include "variants/backends/backend.h"

/* In NAME.isa.c, which the Makefile compiles with -DISA=avx2 and so on: the function of this set. */
#define AT_ISA(name) ISA_JOIN(name, ISA)
#define ISA_JOIN(name, isa) ISA_PASTE(name, isa)
#define ISA_PASTE(name, isa) name##_##isa

/* Products of a set, or with int8_ before it of rows that are rounded to q8. */
#define GEMM_FUNCTIONS(isa)                                                                        \
    void gemm_##isa(const struct gemm *g);                                                         \
    void gemm_act_##isa(const struct gemm *g, const struct act *epilogue);                         \
    void gemm_gate_##isa(const struct gemm *g, const struct gate_op *gate);                        \
    size_t gemm_packed_floats_##isa(const struct gemm *like);                                      \
    size_t gemm_room_##isa(void);                                                                  \
    void gemm_pack_##isa(float *dst, const struct gemm *like);

#define SIMD_FUNCTIONS(isa)                                                                        \
    extern const struct attn_impl attn_fused_##isa;                                                \
    extern const struct recur_impl recur_unit_##isa, recur_channels_##isa, recur_step_##isa,       \
        recur_fused_##isa;                                                                         \
    GEMM_FUNCTIONS(isa)                                                                            \
    GEMM_FUNCTIONS(int8_##isa)                                                                     \
    const char *int8_by_##isa(void);                                                               \
    void softmax_##isa(const struct softmax *o);                                                   \
    void norm_##isa(const struct norm *o);                                                         \
    void act_##isa(const struct act *o);                                                           \
    void glu_##isa(const struct glu *o);                                                           \
    void gate_##isa(const struct gate_op *o);                                                      \
    void rnn_cell_##isa(const struct rnn_step *o);                                                 \
    void nll_##isa(const struct nll_op *o);                                                        \
    void softmax_grad_##isa(const struct softmax_grad *o);                                         \
    void norm_grad_##isa(const struct norm_grad *o);                                               \
    void act_grad_##isa(const struct act_grad *o);                                                 \
    void glu_grad_##isa(const struct glu_grad *o);                                                 \
    void gate_grad_##isa(const struct gate_grad *o);                                               \
    void rnn_cell_grad_##isa(const struct rnn_step_grad *o);                                       \
    void nll_grad_##isa(const struct nll_grad *o);

#if defined(__aarch64__)
SIMD_FUNCTIONS(neon)
GEMM_FUNCTIONS(int8_neon_dot)
#else
SIMD_FUNCTIONS(avx2)
SIMD_FUNCTIONS(avx512)
GEMM_FUNCTIONS(int8_avx_vnni)
GEMM_FUNCTIONS(int8_avx512_vnni)
GEMM_FUNCTIONS(int8_amx_int8)

extern const struct attn_impl attn_fused_avx512_bf16;

/* Products with weights of bf16 in pairs; others, and all packing, are those of gemm_avx512. */
GEMM_FUNCTIONS(avx512_bf16)
GEMM_FUNCTIONS(amx_bf16)
#endif
