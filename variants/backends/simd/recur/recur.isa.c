/* SPDX-License-Identifier: MIT
 *
 * recur_chunk.inc.c and recur_grad.inc.c compiled for one instruction set. */
#include "recur_chunk.inc.c"
#include "recur_grad.inc.c"
#include "variants/backends/simd/simd.h"

static bool accepts(const struct recur *r, bool backward)
{
    return !(r->u && (r->i.at || r->beta.at));
}

static size_t need(const struct recur *r, int threads, bool backward)
{
    return (size_t)threads * (backward ? grads_bytes(r) : chunk_bytes(r));
}

const struct recur_impl AT_ISA(recur_fused) = {
    .name = "fused",
    .accepts = accepts,
    .need = need,
    .forward = chunk_forward,
    .backward = chunk_backward,
};
