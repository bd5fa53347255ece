/* SPDX-License-Identifier: MIT
 *
 * One sub-layer with a state, bound alone for training, for tests against its equations by hand. */
#ifndef BOUND_LAYER_H
#define BOUND_LAYER_H

#include "every_backend.h"
#include "finite.h"
#include "model.h"
#include "open_engine.h"

struct bound {
    struct engine g;
    struct config c;
    struct params p;
    struct arena a;
    struct sublayers sublayers;
    struct extent max;
    float *x, *y, *d_y, *d_x; /* [B,L,D] */
};

static inline void bound_bind(struct bound *t)
{
    struct err e = {""};

    params_place(&t->p, &t->a);
    cr_assert_eq(sublayers_bind(&t->sublayers, &t->g, &t->p, MEM_STATE, t->max, &t->a, &e), OK,
                 "%s", e.msg);
    cr_assert_eq(sublayers_bind_grad(&t->sublayers, &t->g, &t->a, &e), OK, "%s", e.msg);
    params_place_grad(&t->p, &t->a);
}

/* Weights and inputs, whose spread is given, are drawn from the seed and quantised; all else begins
 * as NaN, but the state, which is that of no past. Skips the test where the backend is not usable.
 */
static inline void bound_open(struct bound *t, struct config c, const char *backend, int threads,
                              int B, int L, float spread)
{
    const size_t n = (size_t)(B * L * c.D);
    struct err e = {""};

    *t = (struct bound){.c = c, .max = {B, L, 0}};
    if (engine_open(&t->g, backend, threads, NULL, &e) != OK)
        cr_skip_test("%s", e.msg);
    give_room(&t->g);
    cr_assert_eq(sublayers_init_operator(&t->sublayers, &t->c, &t->p, 0, &e), OK, "%s", e.msg);
    bound_bind(t);
    cr_assert_eq(arena_place(&t->a, HUGE_NEVER, NULL, NULL, &e), OK);
    memset(t->a.base, 0xff, t->a.size);
    bound_bind(t);
    sublayers_forget(&t->sublayers);
    params_init(&t->p, SEED, 1);
    for (int i = 0; i < t->p.n; i++)
        quantise(t->p.v[i].data, t->p.v[i].n);
    t->x = normal(n, "x", 0, spread), t->d_y = normal(n, "d_y", 0, 1);
    t->y = guarded(n), t->d_x = guarded(n);
    quantise(t->x, n);
}

static inline void bound_close(struct bound *t)
{
    release(t->x), release(t->y), release(t->d_y), release(t->d_x);
    sublayers_free(&t->sublayers);
    params_free(&t->p);
    arena_release(&t->a);
}

#endif
