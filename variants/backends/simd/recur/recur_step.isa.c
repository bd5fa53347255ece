/* SPDX-License-Identifier: MIT
 *
 * The step of recur_step.inc.c compiled for one instruction set. */
#include "recur_step.inc.c"
#include "variants/backends/simd/simd.h"

static size_t need(const struct recur *r, int threads, bool backward)
{
    (void)backward;
    return (size_t)threads * step_bytes(r);
}

const struct recur_impl AT_ISA(recur_step) = {
    .name = "step",
    .accepts = step_accepts,
    .need = need,
    .forward = step_forward,
};
