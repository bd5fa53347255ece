/* SPDX-License-Identifier: MIT
 *
 * The optimiser against its equations, computed here in double: steps, which parameters decay, the
 * place of eps, and the norm of the gradient at sizes that divide badly. */
#include "tests/support/bound_optimizer.h"

enum { MATRICES = 1 << PARAM_MATRICES };
static const struct engine alone = {.threads = 1}; /* AdamW needs no operations */

/* One number and its moments. */
struct exact {
    double x, m, v;
};

static void exact_step(struct exact *s, double g, int t, double lr, double decay)
{
    s->m = 0.9 * s->m + 0.1 * g;
    s->v = 0.999 * s->v + 0.001 * g * g;
    s->x -=
        lr * (s->m / (1 - pow(0.9, t)) / (sqrt(s->v / (1 - pow(0.999, t))) + 1e-8) + decay * s->x);
}

/* A buffer takes its step as it is, and is no part of the gradient. */
Test(optimizer, adds_the_steps_of_buffers)
{
    struct bound b = {.o.weight_decay = 0.1, .o.decays = MATRICES};

    params_matrix(&b.p, 1, 1, "", "w");
    params_buffer(&b.p, params_vector(&b.p, INIT_ONE, 0, 2, "", "phi"));
    bind(&b);
    b.p.v[0].data[0] = 1;
    b.p.v[0].grad[0] = 3;
    for (int e = 0; e < 2; e++) {
        b.p.v[1].data[e] = 1;
        b.p.v[1].grad[e] = 0.25f * (float)(e + 1);
    }
    cr_expect_eq(grad_norm(&b.p, 1), 3);
    optimizer_step(&b.o, &b.p, &alone, 0.01, 0.5);
    NUMBERS({b.p.v[1].data[0], 1.25f}, {b.p.v[1].data[1], 1.5f});
    cr_expect_lt(b.p.v[0].data[0], 1);
    optimizer_step(&b.o, &b.p, &alone, 0, 0.5);
    cr_expect_eq(b.p.v[1].data[0], 1.25f);
}

Test(optimizer, takes_the_steps_of_its_equations)
{
    const double g[] = {0.5, -2, 0.1}, lr = 0.01, decay = 0.1, scale = 0.5;
    struct bound b = {.o.weight_decay = decay, .o.decays = MATRICES};
    struct exact s = {.x = 1.25};

    params_matrix(&b.p, 1, 1, "", "w");
    bind(&b);
    b.p.v[0].data[0] = 1.25f;
    for (int t = 1; t <= 3; t++) {
        b.p.v[0].grad[0] = (float)g[t - 1];
        optimizer_step(&b.o, &b.p, &alone, lr, scale);
        exact_step(&s, scale * g[t - 1], t, lr, decay);
        /* A few float roundings of values near 1 per step. */
        cr_expect_float_eq(b.p.v[0].data[0], s.x, 1e-6, "step %d", t);
    }
    cr_expect_eq(b.o.step, 3);
}

/* Each group decays if it is chosen, and no other does. */
Test(optimizer, decays_the_groups_that_are_chosen)
{
    static const enum param_group group[] = {PARAM_MATRICES, PARAM_MATRICES,   PARAM_OUTPUT,
                                             PARAM_BIASES,   PARAM_NORMS,      PARAM_EMBEDDINGS,
                                             PARAM_OTHERS,   PARAM_EMBEDDINGS, PARAM_OTHERS};
    const double lr = 0.01, decay = 0.5;

    for (int chosen = 0; chosen < PARAM_GROUPS; chosen++) {
        struct bound b = {.o.weight_decay = decay, .o.decays = 1u << chosen};
        params_matrix(&b.p, 5, 3, "", "matrix");
        params_add(&b.p, INIT_LINEAR, 0, 3, (const int[]){2, 5, 3}, "%s", "experts");
        b.p.v[params_matrix(&b.p, 5, 3, "", "output")].group = PARAM_OUTPUT;
        params_vector(&b.p, INIT_ZERO, 0, 5, "", "bias");
        params_vector(&b.p, INIT_ONE, 0, 5, "", "norm");
        params_add(&b.p, INIT_EMBED, 0, 2, (const int[]){7, 3}, "%s", "embedding");
        params_add(&b.p, INIT_TABLE, 0, 2, (const int[]){7, 3}, "%s", "table");
        params_add(&b.p, INIT_EMBED, 0, 3, (const int[]){2, 7, 3}, "%s", "keys");
        params_vector(&b.p, INIT_CONST, 0.5f, 3, "", "mix");
        bind(&b);
        for (int i = 0; i < b.p.n; i++) {
            struct exact s = {.x = 1.5};
            cr_expect_eq(b.p.v[i].group, group[i], "%s", b.p.v[i].name);
            for (size_t k = 0; k < b.p.v[i].n; k++)
                b.p.v[i].data[k] = 1.5f, b.p.v[i].grad[k] = 0.25f;
            exact_step(&s, 0.25, 1, lr, (int)group[i] == chosen ? decay : 0);
            optimizer_step(&b.o, &b.p, &alone, lr, 1);
            for (size_t k = 0; k < b.p.v[i].n; k++)
                cr_expect_float_eq(b.p.v[i].data[k], s.x, 1e-6, "%s %zu: %.9g, not %.9g",
                                   b.p.v[i].name, k, (double)b.p.v[i].data[k], s.x);
            optimizer_reset(&b.o, &b.p);
        }
    }
}

/* Gradients about as large as eps move their parameter by a fraction of the rate that depends on
 * where eps is added: 1/11, 1/2 and 10/11 of it. */
Test(optimizer, adds_eps_outside_of_the_root)
{
    const double g[] = {1e-9, 1e-8, 1e-7}, lr = 0.01;
    struct bound b = {0};

    params_vector(&b.p, INIT_ZERO, 0, 3, "", "x");
    bind(&b);
    for (int k = 0; k < 3; k++)
        b.p.v[0].data[k] = 0, b.p.v[0].grad[k] = (float)g[k];
    optimizer_step(&b.o, &b.p, &alone, lr, 1);
    for (int k = 0; k < 3; k++) {
        const double want = -lr * g[k] / (g[k] + 1e-8);
        cr_expect_float_eq(b.p.v[0].data[k], want, 1e-5 * lr, "%g: moved by %g, not %g", g[k],
                           (double)b.p.v[0].data[k], want);
    }
}

/* Ones: each element counts once. Sizes around multiples of the blocks that the sum is cut into,
 * and one that threads share. */
Test(optimizer, norm_counts_every_element)
{
    static const int sizes[] = {1, 2, 63, 64, 65, 127, 128, 129, 4095, 4097, 20001};

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        for (int threads = 1; threads <= 2; threads++) {
            struct bound b = {0};
            params_vector(&b.p, INIT_ZERO, 0, sizes[i], "", "x");
            params_vector(&b.p, INIT_ZERO, 0, 3, "", "y");
            bind(&b);
            for (int k = 0; k < sizes[i]; k++)
                b.p.v[0].grad[k] = 1;
            for (int k = 0; k < 3; k++)
                b.p.v[1].grad[k] = 2;
            const double got = grad_norm(&b.p, threads);
            cr_expect_float_eq(got * got, sizes[i] + 12, 1e-9 * sizes[i], "%d elements, %d threads",
                               sizes[i], threads);
        }
}

/* What is frozen is no part of the gradient, however large its own is: the step is that of parameters
 * that stand alone. */
Test(optimizer, frozen_gradients_clip_nothing)
{
    enum { N = 37 };
    const double limit = 0.5;

    for (int kind = 0; optimizer_name[kind]; kind++) {
        const struct optimizer like = {
            .kind = (enum optimizer_kind)kind, .weight_decay = 0.1, .decays = MATRICES};
        struct engine engine;
        struct bound both = {.o = like}, one = {.o = like};
        double norm[2];
        MUST(engine_open(&engine, "ref", 1, NULL, &failure));
        params_matrix(&both.p, N, 3, "layers.0.", "frozen");
        both.p.v[0].frozen = true;
        for (int i = 0; i < 2; i++) {
            params_matrix(i ? &one.p : &both.p, N, 2, "layers.0.", "w");
            params_vector(i ? &one.p : &both.p, INIT_ZERO, 0, N, "layers.0.", "x");
        }
        bind(&both), bind(&one);
        for (size_t k = 0; k < both.p.v[0].n; k++)
            both.p.v[0].data[k] = 1, both.p.v[0].grad[k] = 1e4f;
        for (int t = 0; t < 3; t++)
            for (int i = 0; i < 2; i++) {
                struct bound *const b = i ? &one : &both;
                for (int p = 0; p < 2; p++) {
                    const struct param *const w = &b->p.v[p + !i];
                    for (size_t k = 0; k < w->n; k++) {
                        w->grad[k] = sinf((float)(t + p) + (float)k);
                        w->data[k] = t == 0 ? cosf((float)k) : w->data[k];
                    }
                }
                norm[i] = grad_norm(&b->p, 1);
                cr_expect_eq(norm[i], norm[0], "%s", optimizer_name[kind]);
                cr_expect_gt(norm[i], limit);
                optimizer_step(&b->o, &b->p, &engine, 0.01, limit / norm[i]);
            }
        for (int p = 0; p < 2; p++)
            cr_expect_arr_eq(both.p.v[p + 1].data, one.p.v[p].data, one.p.v[p].n * sizeof(float),
                             "%s: %s", optimizer_name[kind], one.p.v[p].name);
        for (size_t k = 0; k < both.p.v[0].n; k++)
            cr_expect_eq(both.p.v[0].data[k], 1, "%s", optimizer_name[kind]);
    }
}
