/* SPDX-License-Identifier: MIT
 *
 * Depth backward: gradients of a model whose layer is run several times against differences, for
 * steps that do not change when positions halt. */
#include "tests/support/kernel/universal_case.h"
#include "tests/support/trained.h"

/* Maps larger than those of avoid_corners(), so that positions halt at different steps. */
static void wide_of_corners(struct params *all)
{
    for (struct param *p = all->v; p < all->v + all->n; p++) {
        const bool map = strstr(p->name, "ff.1.w") || strstr(p->name, "ff.2.w");
        for (size_t k = 0; k < p->n; k++)
            p->data[k] = strstr(p->name, "ff.1.bias") ? (k % 2 ? -1.0f : 1.0f)
                                                      : p->data[k] * (map ? 0.25f : 1);
        quantise(p->data, p->n);
    }
}

/* Distance of the closest decision to its threshold; 0 if all positions took the same steps. */
static double margin(struct trained *t)
{
    const struct depth *d = t->m.lm.drive_data;
    const double most = 1 - (double)d->c->halt_eps;
    double near = 1;
    bool differ = false;

    loss(t);
    for (int i = 0; i < B * L; i++) {
        double sum = 0;
        differ = differ || d->steps[i] != d->steps[0];
        for (int s = 0; s < d->steps[i] && s < STEPS - (d->c->halt == HALT_GRAVES); s++) {
            sum += d->p[s * B * L + i];
            near = fmin(near, fabs(sum - most));
        }
    }
    return differ ? near : 0;
}

/* A threshold that steps of the differences do not reach: the number of steps is a constant. */
static double keep_away(struct trained *t)
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
        struct trained t;
        open_trained(&t, &c, "ref", 2);
        wide_of_corners(&t.m.lm.params);
        const double away = halt == HALT_NEVER ? 1 : keep_away(&t);
        cr_expect(away > 0.01, "%s: decisions are %g away", halt_name[halt], away);
        /* As whole models elsewhere: some ten roundings of a mean near ln V, 4 U of it. */
        const struct scalar f = {loss, &t, 4 * U * log(11), 0x1p-9};
        run_backward(&t);
        expect_gradients(&f, halt_name[halt], &t.m.lm.params, 64 * U, 2 * f.noise / f.step);
    }
}
