/* SPDX-License-Identifier: MIT
 *
 * Fused attention of attn.inc.c compiled for AVX-512. */
#define VEC_AVX512
#include "attn.inc.c"

#include "attn_grad.inc.c"
#include "simd.h"

const struct attn_impl attn_fused_avx512 = {
    .name = "fused",
    .accepts = fused_accepts,
    .need = fused_need,
    .forward = fused_forward,
    .need_backward = fused_need_backward,
    .backward = fused_backward,
};
