/* SPDX-License-Identifier: MIT
 *
 * Parameters with gradients and moments of their own, for tests of optimisers. */
#pragma once

#include "failure.h"
#include "variants/model/optimise/optimizer.h"

struct bound {
    struct params p;
    struct optimizer o;
    struct arena a;
};

/* Call once the parameters are declared. Kept until the test ends. */
static inline void bind(struct bound *b)
{
    for (int pass = 0; pass < 2; pass++) {
        params_place(&b->p, &b->a);
        params_place_grad(&b->p, &b->a);
        optimizer_bind(&b->o, &b->p, &b->a);
        if (pass == 0)
            cr_assert_eq(arena_place(&b->a, HUGE_NEVER, NULL, NULL, &failure), OK);
    }
    optimizer_reset(&b->o, &b->p);
    params_init(&b->p, 3, 1);
    kept_copy(b, sizeof(*b));
}
