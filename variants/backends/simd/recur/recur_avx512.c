/* SPDX-License-Identifier: MIT
 *
 * recur_chunk.inc.c and recur_grad.inc.c compiled for AVX-512. */
#define VEC_AVX512
#include "recur_chunk.inc.c"
#include "recur_grad.inc.c"
#include "variants/backends/simd/simd.h"

static bool accepts(const struct recur *r, bool backward)
{
    (void)backward;
    return !(r->u && (r->i.at || r->beta.at));
}

static size_t need(const struct recur *r, int threads, bool backward)
{
    return (size_t)threads * (backward ? grads_bytes(r) : chunk_bytes(r));
}

const struct recur_impl recur_fused_avx512 = {
    .name = "fused",
    .accepts = accepts,
    .need = need,
    .forward = chunk_forward,
    .backward = chunk_backward,
};
