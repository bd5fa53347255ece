/* SPDX-License-Identifier: MIT
 *
 * Depth backward: gradients of a model whose layer is run several times against differences, for
 * steps that do not change when positions halt. */
#include "tests/support/finite.h"
#include "tests/support/universal_case.h"

enum { B = 2 };

struct learner {
    struct model m;
    int32_t tokens[B * T], targets[B * T];
    float nll[B * T];
};

static enum status bind_learner(struct learner *t, struct err *e)
{
    const enum status st =
        lm_bind(&t->m.lm, &t->m.g, MEM_NONE, (struct extent){B, T, 0}, &t->m.arena, e);

    return st == OK ? lm_bind_grad(&t->m.lm, &t->m.g, &t->m.arena, e) : st;
}

static double loss(void *ctx)
{
    struct learner *t = ctx;
    double sum = 0;

    lm_build_tables(&t->m.lm, &t->m.g);
    lm_forward(&t->m.lm, &t->m.g, t->tokens, B, T, T, t->targets, t->nll);
    for (int i = 0; i < B * T; i++)
        sum += (double)t->nll[i] / (B * T);
    return sum + pondering(&t->m.lm);
}

static void open_learner(struct learner *t, const struct config *c)
{
    struct err e = {""};

    *t = (struct learner){0};
    cr_assert_eq(engine_open(&t->m.g, "ref", 2, NULL, &e), OK, "%s", e.msg);
    cr_assert_eq(lm_init(&t->m.lm, c, &e), OK, "%s", e.msg);
    cr_assert_eq(bind_learner(t, &e), OK, "%s", e.msg);
    cr_assert_eq(arena_place(&t->m.arena, HUGE_NEVER, NULL, NULL, &e), OK, "%s", e.msg);
    memset(t->m.arena.base, 0xff, t->m.arena.size);
    cr_assert_eq(bind_learner(t, &e), OK, "%s", e.msg);
    params_init(&t->m.lm.params, SEED, 1);
    for (int i = 0; i < t->m.lm.params.n; i++) {
        struct param *const p = &t->m.lm.params.v[i];
        const bool map = strstr(p->name, "ff.1.w") || strstr(p->name, "ff.2.w");
        for (size_t k = 0; k < p->n; k++) { /* no ReLU comes near its corner */
            p->data[k] *= map ? 0.25f : 1;
            if (strstr(p->name, "ff.1.bias"))
                p->data[k] = k % 2 ? -1 : 1;
        }
        quantise(p->data, p->n);
    }
    for (int i = 0; i < B * T; i++) {
        t->tokens[i] = token_of(&t->m, i / T, i % T);
        t->targets[i] = token_of(&t->m, i / T, i % T + 1);
    }
}

static void close_learner(struct learner *t)
{
    lm_free(&t->m.lm);
    arena_release(&t->m.arena);
}

/* Distance of the closest decision to its threshold; 0 if all positions took the same steps. */
static double margin(struct learner *t)
{
    const struct depth *d = t->m.lm.drive_data;
    const double most = 1 - (double)d->c->halt_eps;
    double near = 1;
    bool differ = false;

    loss(t);
    for (int i = 0; i < B * T; i++) {
        double sum = 0;
        differ = differ || d->steps[i] != d->steps[0];
        for (int s = 0; s < d->steps[i] && s < STEPS - (d->c->halt == HALT_GRAVES); s++) {
            sum += d->p[s * B * T + i];
            near = fmin(near, fabs(sum - most));
        }
    }
    return differ ? near : 0;
}

/* A threshold that steps of the differences do not reach: the number of steps is a constant. */
static double keep_away(struct learner *t)
{
    float *const eps = &t->m.lm.c.halt_eps;
    double most = 0;
    int chosen = 1;

    for (int i = 1; i < 25; i++) {
        *eps = 0.02f * (float)i;
        const double at = margin(t);
        if (at > most)
            most = at, chosen = i;
    }
    *eps = 0.02f * (float)chosen;
    return most;
}

Test(universal_grad, is_the_derivative, .timeout = 240)
{
    for (int halt = 0; halt < HALT_KINDS; halt++) {
        const struct config c = depth_of((enum halt_kind)halt, STEPS);
        struct learner t;
        float *grad = NULL;
        open_learner(&t, &c);
        const double away = halt == HALT_NEVER ? 1 : keep_away(&t);
        cr_expect(away > 0.01, "%s: decisions are %g away", halt_name[halt], away);
        /* As whole models elsewhere: some ten roundings of a mean near ln V, 4 U of it. */
        const struct scalar f = {loss, &t, 4 * U * log(11), 0x1p-9};
        loss(&t);
        params_zero_grad(&t.m.lm.params);
        lm_backward(&t.m.lm, &t.m.g, t.tokens, t.targets, B, T);
        for (int i = 0; i < t.m.lm.params.n; i++) {
            struct param *const w = &t.m.lm.params.v[i];
            grad = realloc(grad, w->n * sizeof(*grad));
            cr_assert_not_null(grad);
            memcpy(grad, w->grad, w->n * sizeof(*grad));
            expect_gradient(&f, w->name, w->data, grad, w->n, 64 * U, 2 * f.noise / f.step);
        }
        free(grad);
        close_learner(&t);
    }
}
