/* SPDX-License-Identifier: MIT
 *
 * Fused attention of attn.inc.c compiled for one instruction set. */
#include "attn.inc.c"

#include "attn_grad.inc.c"
#include "simd.h"

const struct attn_impl AT_ISA(attn_fused) = {
    .name = "fused",
    .accepts = fused_accepts,
    .need = fused_need,
    .forward = fused_forward,
    .need_backward = fused_need_backward,
    .backward = fused_backward,
};
