/* SPDX-License-Identifier: MIT
 *
 * Which variants are trained: not those for inference only, nor those that see what follows. */
#pragma once

#include "variants/variant.h"

static inline bool trains(const struct variant *v)
{
    return v->stream_sinks == 0 && !v->bidirectional;
}
