/* SPDX-License-Identifier: MIT
 *
 * What lm_backward calls complete stays as it is: the gradients that it names while it runs are
 * those at its end, to the bit, for every variant that is trained. */
#include "tests/support/trained.h"

struct watched {
    struct params *p;
    int from, calls; /* complete from here on */
    float **then;    /* [p->n] their gradients when it was said */
};

static void look(void *arg, int first)
{
    struct watched *const w = arg;

    cr_assert_leq(first, w->from == w->p->n ? w->p->n : w->from, "it falls");
    for (int i = first; i < w->from; i++) {
        w->then[i] = room(w->p->v[i].n, sizeof(float));
        memcpy(w->then[i], w->p->v[i].grad, w->p->v[i].n * sizeof(float));
    }
    w->calls++;
    w->from = first;
}

/* Returns how often it was said. */
static int expect_complete(const struct config *c)
{
    struct trained t;

    open_trained(&t, c, "ref", 1);
    struct params *const p = &t.m.lm.params;
    struct watched w = {.p = p, .from = p->n, .then = room((size_t)p->n, sizeof(*w.then))};
    cr_assert_not_null(w.then);
    params_init(p, SEED, 1);
    remember(&t);
    t.m.lm.complete = look;
    t.m.lm.complete_arg = &w;
    run_backward(&t);
    cr_expect_eq(w.from, 0, "%s: not all are complete at the end", c->variant->name);
    for (int i = 0; i < p->n; i++) {
        cr_expect(w.then[i] && memcmp(w.then[i], p->v[i].grad, p->v[i].n * sizeof(float)) == 0,
                  "%s: %s changed after it was complete", c->variant->name, p->v[i].name);
    }
    return w.calls;
}

Test(complete, stays, .timeout = 120)
{
    for (int v = 0; variants[v]; v++) {
        const struct config c = config_default(variants[v], 12, 3, 3, 17, 2, 11);
        if (!trains(variants[v]) || config_check(&c, &failure) != OK)
            continue;
        const int calls = expect_complete(&c);
        cr_expect_geq(calls, 1);
        if (strcmp(variants[v]->name, "xl") == 0) /* its layers share no parameters */
            cr_expect_gt(calls, 2, "sums would begin at the end only");
    }
}
