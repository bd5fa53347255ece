/* SPDX-License-Identifier: MIT
 *
 * The recurrences of recur_chunk.inc.c compiled for AVX-512. */
#define VEC_AVX512
#include "recur_chunk.inc.c"
#include "simd.h"

static bool accepts(const struct recur *r, bool backward)
{
    (void)backward;
    return !(r->u && r->i.at);
}

static size_t need(const struct recur *r, int threads, bool backward)
{
    return backward ? recur_chunked.need(r, threads, true) : (size_t)threads * chunk_bytes(r);
}

static void backward(const struct engine *g, const struct recur *r, const struct recur_grad *d,
                     void *scratch)
{
    recur_chunked.backward(g, r, d, scratch);
}

const struct recur_impl recur_fused_avx512 = {
    .name = "fused",
    .accepts = accepts,
    .need = need,
    .forward = chunk_forward,
    .backward = backward,
};
