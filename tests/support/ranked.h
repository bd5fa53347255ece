/* SPDX-License-Identifier: MIT
 *
 * The rankings of a run, kept until the test ends. */
#pragma once

#include "harness/measure/ranking.h"
#include "kept.h"

static inline struct rankings ranked(const struct run *run, enum ranked what)
{
    const struct rankings r = rankings_make(run, what);

    kept_copy(&r, sizeof(r));
    return r;
}
