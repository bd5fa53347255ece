/* SPDX-License-Identifier: MIT
 *
 * Buffers with guard words (harness/check/guarded.h) that are kept until the test ends. */
#pragma once

#include "harness/check/guarded.h"
#include "tests/support/kept.h"

static inline float *fenced(size_t n) { return kept(guarded(n)); }

static inline float *normals(size_t n, const char *name, float mean, float sd)
{
    return kept(normal(n, name, mean, sd));
}
