/* SPDX-License-Identifier: MIT
 *
 * Fused attention of attn.inc.c with pairs of bf16, compiled for AVX512-BF16. */
#define VEC_AVX512
#define VEC_BF16
#include "attn.inc.c"
#include "simd.h"

const struct attn_impl attn_fused_avx512_bf16 = {
    .name = "fused_bf16",
    .accepts = fused_accepts,
    .need = fused_need,
    .forward = fused_forward,
    .rounds = true,
};
