/* SPDX-License-Identifier: MIT
 *
 * The step of recur_step.inc.c compiled for AVX-512. */
#define VEC_AVX512
#include "recur_step.inc.c"
#include "variants/backends/simd/simd.h"

static size_t need(const struct recur *r, int threads, bool backward)
{
    (void)backward;
    return (size_t)threads * step_bytes(r);
}

const struct recur_impl recur_step_avx512 = {
    .name = "step",
    .accepts = step_accepts,
    .need = need,
    .forward = step_forward,
};
