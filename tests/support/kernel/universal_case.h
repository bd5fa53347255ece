/* SPDX-License-Identifier: MIT
 *
 * For tests of depth: a layer run several times, small. */
#pragma once

#include "tests/support/model.h"

enum { T = 9, STEPS = 4, D = 12 }; /* text, maximum of steps, width */

static inline struct config depth_of(enum halt_kind halt, int steps)
{
    struct config c = config_default(variant_find("universal"), D, 3, 5, 17, steps, 11);

    c.halt = halt;
    c.halt_eps = 0.1f;
    c.ponder_tau = 0.05f;
    return c;
}
