/* SPDX-License-Identifier: MIT
 *
 * The recurrences of recur_unit.inc.c compiled for AVX-512. */
#define VEC_AVX512
#include "recur_unit.inc.c"
#include "variants/backends/simd/simd.h"

static size_t need(const struct recur *r, int threads, bool backward)
{
    return (size_t)threads * unit_bytes(r, backward);
}

const struct recur_impl recur_unit_avx512 = {
    .name = "elementwise",
    .accepts = unit_accepts,
    .need = need,
    .forward = unit_forward,
    .backward = unit_backward,
};
