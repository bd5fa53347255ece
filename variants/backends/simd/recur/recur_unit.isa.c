/* SPDX-License-Identifier: MIT
 *
 * The recurrences of recur_unit.inc.c compiled for one instruction set. */
#include "recur_unit.inc.c"
#include "variants/backends/simd/simd.h"

static size_t need(const struct recur *r, int threads, bool backward)
{
    return (size_t)threads * unit_bytes(r, backward);
}

const struct recur_impl AT_ISA(recur_unit) = {
    .name = "elementwise",
    .accepts = unit_accepts,
    .need = need,
    .forward = unit_forward,
    .backward = unit_backward,
};
