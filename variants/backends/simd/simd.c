/* SPDX-License-Identifier: MIT
 *
 * The hand-written SIMD backends, assembled from the files compiled per instruction set. This file
 * is baseline code: its tables may be read on any machine. */
#include "simd.h"

#include "variants/backends/composed/composed.h"
#include "variants/backends/recur.h"

static const struct attn_impl *const attn_avx2[] = {&attn_fused_avx2, &attn_composed, NULL};
static const struct attn_impl *const attn_avx512[] = {&attn_fused_avx512, &attn_composed, NULL};
static const struct attn_impl *const attn_avx512_bf16[] = {
    &attn_fused_avx512_bf16, &attn_fused_avx512, &attn_composed, NULL};
static const struct recur_impl *const recur_rows_avx2[] = {&recur_unit_avx2, &recur_channels_avx2,
                                                           &recur_step_avx2, NULL};
static const struct recur_impl *const recur_rows_avx512[] = {
    &recur_unit_avx512, &recur_channels_avx512, &recur_step_avx512, NULL};
static const struct recur_impl *const recur_avx2[] = {&recur_fused_avx2, &recur_chunked, &recur_ref,
                                                      NULL};
static const struct recur_impl *const recur_avx512[] = {&recur_fused_avx512, &recur_chunked,
                                                        &recur_ref, NULL};

const struct backend backend_avx2 = {
    .name = "avx2",
    .about = "hand-written kernels, 256-bit vectors",
    .inherits = "ref",
    .needs = ISA_AVX2,
    .rounds = true,
    .packed_floats = gemm_packed_floats_avx2,
    .pack = gemm_pack_avx2,
    .gemm_act = gemm_act_avx2,
    .gemm_gate = gemm_gate_avx2,
    .ops = {.gemm = gemm_avx2,
            .softmax = softmax_avx2,
            .norm = norm_avx2,
            .act = act_avx2,
            .glu = glu_avx2,
            .gate = gate_avx2,
            .rnn_cell = rnn_cell_avx2,
            .nll = nll_avx2,
            .softmax_grad = softmax_grad_avx2,
            .norm_grad = norm_grad_avx2,
            .act_grad = act_grad_avx2,
            .glu_grad = glu_grad_avx2,
            .gate_grad = gate_grad_avx2,
            .rnn_cell_grad = rnn_cell_grad_avx2,
            .nll_grad = nll_grad_avx2},
    .attn = attn_avx2,
    .recur = recur_avx2,
    .recur_rows = recur_rows_avx2,
};

const struct backend backend_avx512 = {
    .name = "avx512",
    .about = "hand-written kernels, 512-bit vectors",
    .inherits = "avx2",
    .needs = ISA_AVX512,
    .rounds = true,
    .packed_floats = gemm_packed_floats_avx512,
    .pack = gemm_pack_avx512,
    .gemm_act = gemm_act_avx512,
    .gemm_gate = gemm_gate_avx512,
    .ops = {.gemm = gemm_avx512,
            .softmax = softmax_avx512,
            .norm = norm_avx512,
            .act = act_avx512,
            .glu = glu_avx512,
            .gate = gate_avx512,
            .rnn_cell = rnn_cell_avx512,
            .nll = nll_avx512,
            .softmax_grad = softmax_grad_avx512,
            .norm_grad = norm_grad_avx512,
            .act_grad = act_grad_avx512,
            .glu_grad = glu_grad_avx512,
            .gate_grad = gate_grad_avx512,
            .rnn_cell_grad = rnn_cell_grad_avx512,
            .nll_grad = nll_grad_avx512},
    .attn = attn_avx512,
    .recur = recur_avx512,
    .recur_rows = recur_rows_avx512,
};

const struct backend backend_avx512_bf16 = {
    .name = "avx512_bf16",
    .about = "hand-written kernels, 512-bit vectors, products of bf16",
    .inherits = "avx512",
    .needs = ISA_AVX512_BF16,
    .rounds = true,
    .adds = ELEM_BF16,
    .packed_floats = gemm_packed_floats_avx512,
    .pack = gemm_pack_avx512,
    .gemm_act = gemm_act_avx512_bf16,
    .gemm_gate = gemm_gate_avx512_bf16,
    .ops = {.gemm = gemm_avx512_bf16},
    .attn = attn_avx512_bf16,
};
