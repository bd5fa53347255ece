/* SPDX-License-Identifier: MIT
 *
 * The sub-layers of one layer without a model around them. */
#pragma once

#include "harness/check/guarded.h"
#include "open_engine.h"
#include "variants/model/layers/sublayer_list.h"

struct alone {
    struct engine g;
    struct config c;
    struct params p;
    struct sublayers list;
    struct arena a;
    struct extent max;
    enum mem_kind kind;
    bool trains;
};

static inline void alone_bind(struct alone *t)
{
    params_place(&t->p, &t->a);
    MUST(sublayers_bind(&t->list, &t->g, &t->p, t->kind, t->max, &t->a, &failure));
    if (t->trains) {
        MUST(sublayers_bind_grad(&t->list, &t->g, &t->a, &failure));
        params_place_grad(&t->p, &t->a);
    }
}

/* After the sub-layers are declared. All begins as no numbers but weights, which come from the seed. Kept
 * until the test ends. */
static inline void alone_place(struct alone *t)
{
    alone_bind(t);
    cr_assert_eq(arena_place(&t->a, HUGE_NEVER, NULL, NULL, NULL), OK);
    memset(t->a.base, 0xff, t->a.size);
    alone_bind(t);
    params_init(&t->p, SEED, 1);
    kept_copy(t, sizeof(*t));
}
