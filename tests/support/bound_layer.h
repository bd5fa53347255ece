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
    enum mem_kind kind;
    float *x, *y, *d_y, *d_x; /* [B,L,D] */
};

static inline void bound_bind(struct bound *t)
{
    struct err e = {""};

    params_place(&t->p, &t->a);
    cr_assert_eq(sublayers_bind(&t->sublayers, &t->g, &t->p, t->kind, t->max, &t->a, &e), OK, "%s",
                 e.msg);
    cr_assert_eq(sublayers_bind_grad(&t->sublayers, &t->g, &t->a, &e), OK, "%s", e.msg);
    params_place_grad(&t->p, &t->a);
}

/* The operator of a model, or its sub-layer of a letter, which remembers max.M rows. Weights and inputs,
 * whose spread is given, are drawn from the seed and quantised; all else begins as no numbers. */
static inline void bound_open_letter(struct bound *t, struct config c, char letter,
                                     const char *backend, int threads, struct extent max,
                                     float spread)
{
    const size_t n = (size_t)(max.B * max.L * c.D);
    struct err e = {""};

    *t = (struct bound){.g = open_engine(backend, threads),
                        .c = c,
                        .max = max,
                        .kind = !letter ? MEM_STATE
                                : max.M ? MEM_HIDDEN
                                        : MEM_NONE};
    cr_assert_eq(letter ? sublayers_init_bare(&t->sublayers, &t->c, letter, &t->p, 0, &e)
                        : sublayers_init_operator(&t->sublayers, &t->c, &t->p, 0, &e),
                 OK, "%s", e.msg);
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

static inline void bound_open(struct bound *t, struct config c, const char *backend, int threads,
                              int B, int L, float spread)
{
    bound_open_letter(t, c, '\0', backend, threads, (struct extent){B, L, 0}, spread);
}

/* Rows [from, from + n) of each sequence of x, to those of y. */
static inline void bound_run(struct bound *t, int from, int n)
{
    struct sublayer *const s = t->sublayers.at;
    struct work *const w = t->sublayers.work;
    const int B = t->max.B, L = t->max.L, D = t->c.D;
    const size_t bytes = sizeof(float) * (size_t)(n * D);
    float *const in = sublayers_input(&t->sublayers, t->x), *const out =
                                                                guarded((size_t)(B * n * D));

    params_pack(&t->p, &t->g);
    for (int b = 0; b < B; b++)
        memcpy(in + (ptrdiff_t)b * n * D, t->x + ((ptrdiff_t)b * L + from) * D, bytes);
    s->kind->forward(&t->g, s, w, sublayer_source(&t->g, s, w, in, B, n), (struct act){.y = out});
    for (int b = 0; b < B; b++)
        memcpy(t->y + ((ptrdiff_t)b * L + from) * D, out + (ptrdiff_t)b * n * D, bytes);
    cr_expect(guards_intact(out, (size_t)(B * n * D)));
    release(out);
}

static inline double bound_value(void *ctx)
{
    struct bound *t = ctx;
    double sum = 0;

    bound_run(t, 0, t->max.L);
    for (int i = 0; i < t->max.B * t->max.L * t->c.D; i++)
        sum += (double)t->y[i] * (double)t->d_y[i];
    return sum;
}

/* Of the input and of all weights they are differences; some twenty roundings on the way to an output. */
static inline void bound_expect_gradients(struct bound *t)
{
    struct sublayer *const s = t->sublayers.at;
    struct work *const w = t->sublayers.work;
    const int B = t->max.B, L = t->max.L, n = B * L * t->c.D;
    double noise = 0;

    params_zero_grad(&t->p);
    bound_run(t, 0, L);
    s->kind->backward(&t->g, s, w, sublayer_source_again(s, w, B, L), t->d_x, t->d_y, 0);
    for (int i = 0; i < n; i++)
        noise += 4 * U * fabs((double)t->y[i] * (double)t->d_y[i]) / sqrt(n);
    const struct scalar f = {.at = bound_value, .ctx = t, .noise = 4 * noise, .step = 0x1p-6};
    expect_gradient(&f, "x", t->x, t->d_x, (size_t)n, 256 * U, 0);
    for (int i = 0; i < t->p.n; i++)
        expect_gradient(&f, t->p.v[i].name, t->p.v[i].data, t->p.v[i].grad, t->p.v[i].n, 256 * U,
                        0);
}

/* The parameter whose name ends so. */
static inline const float *bound_param(const struct bound *t, const char *end)
{
    for (int i = 0; i < t->p.n; i++)
        if (ends_in(t->p.v[i].name, end))
            return t->p.v[i].data;
    cr_assert_fail("no parameter %s", end);
    return NULL;
}

static inline void bound_close(struct bound *t)
{
    release(t->x), release(t->y), release(t->d_y), release(t->d_x);
    sublayers_free(&t->sublayers);
    params_free(&t->p);
    arena_release(&t->a);
}

#endif
