/* SPDX-License-Identifier: MIT
 *
 * Whole models backward on every backend: the reference's gradients, identical when repeated, and
 * what binding a model for training changes and refuses. */
#include "tests/support/every_backend.h"
#include "tests/support/trained.h"

/* ---- backends as the reference ------------------------------------------------------------ */

TEST_EACH(const int *b, grad_backends, as_the_reference, all_but_ref())
{
    struct form wirings[WIRINGS];
    const size_t n = all_wirings(wirings, false);

    for (size_t i = 0; i < n; i++) {
        const struct config c = wired(&wirings[i], (int)(i % 8) | (wirings[i].gate >= 0));
        if (trains(c.variant) && sampled(i + (size_t)*b, 4))
            as_reference(&c, backends[*b]->name);
    }
}

/* ---- what training changes and what it does not ------------------------------------------- */

/* Keeping what backward needs does not change a bit of forward, but for models that stop early when
 * they are not trained. */
Test(grad_backends, keeping_changes_nothing)
{
    struct form wirings[WIRINGS];
    const size_t n = all_wirings(wirings, false);

    for (int b = 0; backends[b]; b++)
        for (size_t i = 0; i < n && backends[b]->needs <= cpu_isa(); i++) {
            struct config c = wired(&wirings[i], (int)(i % 8));
            if (!trains(c.variant) || c.exit > EXIT_TRAIN || !sampled(i + (size_t)b + 1, 4))
                continue;
            struct trained t;
            struct model plain;
            c.max_seq = bound.L;
            open_trained(&t, &c, backends[b]->name, 1);
            model_open(&plain, &c, backends[b]->name, 1, t.kind, bound);
            lm_forward(&t.m.lm, &t.m.g, t.tokens, B, L, L, t.targets, t.nll);
            lm_forward(&plain.lm, &plain.g, t.tokens, B, L, L, t.targets, plain.nll);
            cr_expect(memcmp(t.nll, plain.nll, sizeof(t.nll)) == 0, "%s", backends[b]->name);
        }
}

Test(grad_backends, gradients_are_added)
{
    const struct form w = {0, -1, WIRING_PRE};
    struct config c = wired(&w, 0);
    struct trained t;

    open_trained(&t, &c, "ref", 1);
    run_backward(&t);
    const struct param *E = &t.m.lm.params.v[t.m.lm.at_embed];
    float *const once = copied(E->grad, E->n);
    loss(&t);
    lm_backward(&t.m.lm, &t.m.g, t.tokens, t.targets, B, L);
    for (size_t e = 0; e < E->n; e++)
        cr_expect_float_eq(E->grad[e], 2 * once[e], 1e-5f);
}

Test(grad_backends, ledger_has_one_gradient_per_weight)
{
    const struct form w = {2, -1, WIRING_POST};
    struct config c = wired(&w, 0);
    struct trained t;

    open_trained(&t, &c, "ref", 1);
    cr_expect_eq(t.m.arena.part[PART_GRADIENTS], t.m.arena.part[PART_WEIGHTS]);
}

Test(grad_backends, projected_memory_is_refused)
{
    const struct form w = {2, -1, WIRING_POST};
    struct config c = wired(&w, 0);
    struct model m = {.g = open_engine("ref", 1)};

    MUST(lm_init(&m.lm, &c, &failure));
    REFUSED(model_bind(&m, MEM_KV, bound, true, &failure), E_UNSUPPORTED,
            "  -> use --mem-kind hidden");
    lm_free(&m.lm);
}

/* A backend whose attention has no backward pass gives an error with its name. */
Test(grad_backends, missing_backward_is_refused)
{
    static const struct attn_impl forward_only = {.name = "forward_only"};
    const struct engine g = open_engine("ref", 1);

    REFUSED(engine_attn_backward(&g, &forward_only, &failure), E_UNSUPPORTED,
            "backend ref has no backward pass");
    HAS(failure.msg, "forward_only");
}
