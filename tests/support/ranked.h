/* SPDX-License-Identifier: MIT
 *
 * The rankings of a run, kept until the test ends, and what they say. */
#pragma once

#include "harness/measure/ranking.h"
#include "run_folder.h"

static inline struct rankings ranked(const struct run *run, enum ranked what)
{
    const struct rankings r = rankings_make(run, what);

    kept_copy(&r, sizeof(r));
    return r;
}

/* Of a run that is over. */
static inline struct rankings ranked_end(struct rundir *d, enum ranked what)
{
    struct run run = made_read(d);

    return ranked(&run, what);
}

static inline bool is_slower(const struct change *c) { return c->verdict == VERDICT_SLOWER; }

static inline void expect_ratio(const struct interval *x, double ratio)
{
    cr_expect(fabs(x->low - log(ratio)) < 1e-9 && fabs(x->high - log(ratio)) < 1e-9,
              "%g [%g %g], not %g", exp(x->mid), exp(x->low), exp(x->high), ratio);
}
