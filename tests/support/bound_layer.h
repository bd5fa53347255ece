/* SPDX-License-Identifier: MIT
 *
 * One sub-layer with a state, bound alone for training, for tests against its equations by hand. */
#pragma once

#include "alone.h"
#include "every_backend.h"
#include "gradients.h"
#include "in_double.h"
#include "model.h"

struct bound {
    struct alone l;
    float *x, *y, *d_y, *d_x; /* [B,L,D] */
};

/* The operator of a model, or its sub-layer of a letter, which remembers max.M rows. Weights and inputs,
 * whose spread is given, are drawn from the seed and quantised; all else begins as no numbers. */
static inline void bound_open_letter(struct bound *t, struct config c, char letter,
                                     const char *backend, int threads, struct extent max,
                                     float spread)
{
    const size_t n = (size_t)(max.B * max.L * c.D);

    *t = (struct bound){.l = {.g = open_engine(backend, threads),
                              .c = c,
                              .max = max,
                              .kind = !letter ? MEM_STATE
                                      : max.M ? MEM_HIDDEN
                                              : MEM_NONE,
                              .trains = true}};
    struct alone *const l = &t->l;
    sublayers_init_bare(&l->list, &l->c, letter ? letter : SUB_ATTENTION, &l->p, 0);
    alone_place(l);
    sublayers_forget(&l->list);
    for (int i = 0; i < l->p.n; i++)
        quantise(l->p.v[i].data, l->p.v[i].n);
    t->x = normals(n, "x", 0, spread), t->d_y = normals(n, "d_y", 0, 1);
    t->y = fenced(n), t->d_x = fenced(n);
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
    struct sublayer *const s = t->l.list.at;
    struct work *const w = t->l.list.work;
    const int B = t->l.max.B, L = t->l.max.L, D = t->l.c.D;
    const size_t bytes = sizeof(float) * (size_t)(n * D);
    float *const in = sublayers_input(&t->l.list, t->x), *const out = fenced((size_t)(B * n * D));

    params_pack(&t->l.p, &t->l.g);
    for (int b = 0; b < B; b++)
        memcpy(in + (ptrdiff_t)b * n * D, t->x + ((ptrdiff_t)b * L + from) * D, bytes);
    s->kind->forward(&t->l.g, s, w, sublayer_source(&t->l.g, s, w, in, B, n),
                     (struct act){.y = out});
    for (int b = 0; b < B; b++)
        memcpy(t->y + ((ptrdiff_t)b * L + from) * D, out + (ptrdiff_t)b * n * D, bytes);
    cr_expect(guards_intact(out, (size_t)(B * n * D)));
}

static inline double bound_value(void *ctx)
{
    struct bound *t = ctx;
    double sum = 0;

    bound_run(t, 0, t->l.max.L);
    for (int i = 0; i < t->l.max.B * t->l.max.L * t->l.c.D; i++)
        sum += (double)t->y[i] * (double)t->d_y[i];
    return sum;
}

/* Of the input and of all weights they are differences; some twenty roundings on the way to an output. */
static inline void bound_expect_gradients(struct bound *t)
{
    struct sublayer *const s = t->l.list.at;
    struct work *const w = t->l.list.work;
    const int B = t->l.max.B, L = t->l.max.L, n = B * L * t->l.c.D;
    double noise = 0;

    params_zero_grad(&t->l.p);
    bound_run(t, 0, L);
    s->kind->backward(&t->l.g, s, w, sublayer_source_again(s, w, B, L), t->d_x, t->d_y, 0);
    for (int i = 0; i < n; i++)
        noise += 4 * U * fabs((double)t->y[i] * (double)t->d_y[i]) / sqrt(n);
    const struct scalar f = {.at = bound_value, .ctx = t, .noise = 4 * noise, .step = 0x1p-6};
    expect_gradient(&f, "x", t->x, t->d_x, (size_t)n, 256 * U, 0);
    expect_gradients(&f, "", &t->l.p, 256 * U, 0);
}

/* The parameter whose name ends so. */
static inline const float *bound_param(const struct bound *t, const char *end)
{
    for (int i = 0; i < t->l.p.n; i++)
        if (ends_in(t->l.p.v[i].name, end))
            return t->l.p.v[i].data;
    cr_assert_fail("no parameter %s", end);
    return NULL;
}
