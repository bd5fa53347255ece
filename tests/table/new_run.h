/* SPDX-License-Identifier: MIT
 *
 * A run that a test begins with. */
#pragma once

#include "tests/support/run_folder.h"

static inline struct rundir new_run(void)
{
    struct rundir r;

    made_open(&r, "aaaa");
    return r;
}
