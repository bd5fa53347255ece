/* SPDX-License-Identifier: MIT
 *
 * The recurrences of recur_channels.inc.c compiled for one instruction set. */
#include "recur_channels.inc.c"
#include "variants/backends/simd/simd.h"

static size_t need(const struct recur *r, int threads, bool backward)
{
    (void)backward;
    return (size_t)threads * channels_bytes(r);
}

const struct recur_impl AT_ISA(recur_channels) = {
    .name = "channels",
    .accepts = channels_accepts,
    .need = need,
    .forward = channels_forward,
};
