/* SPDX-License-Identifier: MIT
 *
 * Losses of some places only: what a masked language model is trained on. All places picked are the
 * model without picking, to the bit; and gradients are means, so those of two halves of the places
 * make that of all. That of all is compared with differences elsewhere. */
#include "tests/support/every_backend.h"
#include "tests/support/trained.h"

static const char *const names[] = {"vanilla", "llama",        "bert", "exit", "transparent",
                                    "gemma",   "linformer-bi", "etc",  "xl"};

static void open_named(struct trained *t, const char *name, const char *backend)
{
    struct config c = config_default(variant_find(name), 12, 3, 5, 17, 2, 11);

    c.final_ln = wiring_norms_first(c.wiring);
    if (config_can_look_ahead(&c))
        c.causal = DIRECTION_BOTH;
    open_trained(t, &c, backend, 1);
}

/* Forward and backward of the places; their nll; the mean loss. */
static double run_picked(struct trained *t, const int32_t *places, int n)
{
    int32_t targets[B * L];
    double sum = 0;

    for (int b = 0; b < B; b++)
        for (int i = 0; i < n; i++)
            targets[b * n + i] = t->targets[b * L + (places ? places[b * n + i] : i)];
    t->m.lm.picked = places;
    t->m.lm.n_picked = n;
    params_zero_grad(&t->m.lm.params);
    lm_forward(&t->m.lm, &t->m.g, t->tokens, B, L, L, targets, t->nll);
    for (int i = 0; i < B * n; i++)
        sum += (double)t->nll[i];
    lm_backward(&t->m.lm, &t->m.g, t->tokens, targets, B, L);
    return sum / (B * n);
}

TEST_EACH(int *b, lm_picked, all_places_are_the_model, every_backend())
{
    int32_t all[B * L];

    for (int i = 0; i < B * L; i++)
        all[i] = i % L;
    for (size_t v = 0; v < ARRAY_LEN(names); v++) {
        struct trained t;
        size_t n;
        open_named(&t, names[v], backends[*b]->name);
        const double plain = run_picked(&t, NULL, L);
        float *const g = copy_gradients(&t.m.lm.params, &n);
        cr_expect(run_picked(&t, all, L) == plain, "%s", names[v]);
        float *const same = copy_gradients(&t.m.lm.params, &n);
        cr_expect_eq(memcmp(g, same, n * sizeof(*g)), 0, "%s", names[v]);
    }
}

TEST_EACH(int *b, lm_picked, two_parts_make_the_whole, every_backend())
{
    enum { FEW = 2, REST = L - FEW };
    static const int32_t few[B * FEW] = {0, 3, 1, 4}, rest[B * REST] = {1, 2, 4, 0, 2, 3};

    for (size_t v = 0; v < ARRAY_LEN(names); v++) {
        struct trained t;
        double off = 0, most = 0, moved = 0;
        size_t n;
        open_named(&t, names[v], backends[*b]->name);
        const double whole = run_picked(&t, NULL, L);
        float *const g = copy_gradients(&t.m.lm.params, &n);
        const double first = run_picked(&t, few, FEW);
        float *const g1 = copy_gradients(&t.m.lm.params, &n);
        const double second = run_picked(&t, rest, REST);
        float *const g2 = copy_gradients(&t.m.lm.params, &n);
        for (size_t i = 0; i < n; i++) {
            const double sum = ((double)g1[i] * FEW + (double)g2[i] * REST) / L;
            off = fmax(off, fabs(sum - (double)g[i]));
            moved = fmax(moved, fabs((double)g1[i] - (double)g[i]));
            most = fmax(most, fabs((double)g[i]));
        }
        /* Roundings of sums of fewer than 100 numbers: 100 x 2^-24, and as much again. */
        cr_expect_float_eq((first * FEW + second * REST) / L, whole, 1e-5 * whole, "%s", names[v]);
        cr_expect_lt(off, 1.2e-5 * most, "%s: %g of %g", names[v], off, most);
        cr_expect_gt(moved, 0.1 * most, "%s: the parts differ", names[v]);
    }
}
