/* SPDX-License-Identifier: MIT
 *
 * The hand-written SIMD backends, assembled from the files compiled per instruction set. This file
 * is baseline code: its tables may be read on any machine. */
#include "simd.h"

#include "variants/backends/composed/composed.h"
#include "variants/backends/recur.h"

/* The backend of one level of instructions, which has every operation. */
#define SIMD_BACKEND(ID, isa, parent, text)                                                        \
    static const struct attn_impl *const attn_##isa[] = {&attn_fused_##isa, &attn_composed, NULL}; \
    static const struct recur_impl *const recur_rows_##isa[] = {                                   \
        &recur_unit_##isa, &recur_channels_##isa, &recur_step_##isa, NULL};                        \
    static const struct recur_impl *const recur_##isa[] = {&recur_fused_##isa, &recur_chunked,     \
                                                           &recur_ref, NULL};                      \
    const struct backend backend_##isa = {                                                         \
        .name = #isa,                                                                              \
        .about = text,                                                                             \
        .inherits = parent,                                                                        \
        .needs = ISA_##ID,                                                                         \
        .lacks = lacks_nothing,                                                                    \
        .rounds = true,                                                                            \
        .packed_floats = gemm_packed_floats_##isa,                                                 \
        .pack = gemm_pack_##isa,                                                                   \
        .gemm_room = gemm_room_##isa,                                                              \
        .int8_by = int8_by_##isa,                                                                  \
        .gemm_act = gemm_act_##isa,                                                                \
        .gemm_gate = gemm_gate_##isa,                                                              \
        .ops = {.gemm = gemm_##isa,                                                                \
                .softmax = softmax_##isa,                                                          \
                .norm = norm_##isa,                                                                \
                .act = act_##isa,                                                                  \
                .glu = glu_##isa,                                                                  \
                .gate = gate_##isa,                                                                \
                .rnn_cell = rnn_cell_##isa,                                                        \
                .nll = nll_##isa,                                                                  \
                .softmax_grad = softmax_grad_##isa,                                                \
                .norm_grad = norm_grad_##isa,                                                      \
                .act_grad = act_grad_##isa,                                                        \
                .glu_grad = glu_grad_##isa,                                                        \
                .gate_grad = gate_grad_##isa,                                                      \
                .rnn_cell_grad = rnn_cell_grad_##isa,                                              \
                .nll_grad = nll_grad_##isa},                                                       \
        .attn = attn_##isa,                                                                        \
        .recur = recur_##isa,                                                                      \
        .recur_rows = recur_rows_##isa,                                                            \
    }

#if defined(__aarch64__)
SIMD_BACKEND(NEON, neon, "ref", "hand-written kernels, 128-bit vectors");
#else
SIMD_BACKEND(AVX2, avx2, "ref", "hand-written kernels, 256-bit vectors");
SIMD_BACKEND(AVX512, avx512, "avx2", "hand-written kernels, 512-bit vectors");

static const struct attn_impl *const attn_avx512_bf16[] = {
    &attn_fused_avx512_bf16, &attn_fused_avx512, &attn_composed, NULL};

/* That of avx512 with other products of bf16. */
#define BF16_BACKEND(ID, isa, attention, text)                                                     \
    const struct backend backend_##isa = {                                                         \
        .name = #isa,                                                                              \
        .about = "hand-written kernels, 512-bit vectors, " text,                                   \
        .inherits = "avx512",                                                                      \
        .needs = ISA_##ID,                                                                         \
        .lacks = lacks_nothing,                                                                    \
        .rounds = true,                                                                            \
        .adds = ELEM_BF16,                                                                         \
        .packed_floats = gemm_packed_floats_avx512,                                                \
        .pack = gemm_pack_avx512,                                                                  \
        .gemm_room = gemm_room_##isa,                                                              \
        .int8_by = int8_by_avx512,                                                                 \
        .gemm_act = gemm_act_##isa,                                                                \
        .gemm_gate = gemm_gate_##isa,                                                              \
        .ops = {.gemm = gemm_##isa},                                                               \
        .attn = attention,                                                                         \
    }

BF16_BACKEND(AVX512_BF16, avx512_bf16, attn_avx512_bf16, "products of bf16");
/* Its attention is that of floats: the CPU with tiles that was measured multiplies pairs in vectors at
 * half their rate. */
BF16_BACKEND(AMX_BF16, amx_bf16, NULL, "products of bf16 in tiles");
#endif
