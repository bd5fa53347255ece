/* SPDX-License-Identifier: MIT
 *
 * The functions of the files compiled for one instruction set each, from which simd.c assembles the
 * backends. A name ends in its ISA; calling it on a machine without those instructions faults. */
#ifndef SIMD_H
#define SIMD_H

#include "variants/backends/backend.h"

extern const struct attn_impl attn_fused_avx2;
extern const struct recur_impl recur_unit_avx2, recur_channels_avx2, recur_step_avx2,
    recur_fused_avx2;

void gemm_avx2(const struct gemm *g);
void gemm_act_avx2(const struct gemm *g, const struct act *epilogue);
void gemm_gate_avx2(const struct gemm *g, const struct gate_op *gate);
size_t gemm_packed_floats_avx2(const struct gemm *like);
void gemm_pack_avx2(float *dst, const struct gemm *like);
void softmax_avx2(const struct softmax *o);
void norm_avx2(const struct norm *o);
void act_avx2(const struct act *o);
void glu_avx2(const struct glu *o);
void gate_avx2(const struct gate_op *o);
void rnn_cell_avx2(const struct rnn_step *o);
void nll_avx2(const struct nll_op *o);
void softmax_grad_avx2(const struct softmax_grad *o);
void norm_grad_avx2(const struct norm_grad *o);
void act_grad_avx2(const struct act_grad *o);
void glu_grad_avx2(const struct glu_grad *o);
void gate_grad_avx2(const struct gate_grad *o);
void rnn_cell_grad_avx2(const struct rnn_step_grad *o);
void nll_grad_avx2(const struct nll_grad *o);

extern const struct attn_impl attn_fused_avx512;
extern const struct recur_impl recur_unit_avx512, recur_channels_avx512, recur_step_avx512,
    recur_fused_avx512;

void gemm_avx512(const struct gemm *g);
void gemm_act_avx512(const struct gemm *g, const struct act *epilogue);
void gemm_gate_avx512(const struct gemm *g, const struct gate_op *gate);
size_t gemm_packed_floats_avx512(const struct gemm *like);
void gemm_pack_avx512(float *dst, const struct gemm *like);
void softmax_avx512(const struct softmax *o);
void norm_avx512(const struct norm *o);
void act_avx512(const struct act *o);
void glu_avx512(const struct glu *o);
void gate_avx512(const struct gate_op *o);
void rnn_cell_avx512(const struct rnn_step *o);
void nll_avx512(const struct nll_op *o);
void softmax_grad_avx512(const struct softmax_grad *o);
void norm_grad_avx512(const struct norm_grad *o);
void act_grad_avx512(const struct act_grad *o);
void glu_grad_avx512(const struct glu_grad *o);
void gate_grad_avx512(const struct gate_grad *o);
void rnn_cell_grad_avx512(const struct rnn_step_grad *o);
void nll_grad_avx512(const struct nll_grad *o);

extern const struct attn_impl attn_fused_avx512_bf16;

/* Products with weights of bf16 in pairs; others are those of gemm_avx512. */
void gemm_avx512_bf16(const struct gemm *g);
void gemm_act_avx512_bf16(const struct gemm *g, const struct act *epilogue);
void gemm_gate_avx512_bf16(const struct gemm *g, const struct gate_op *gate);

#endif
