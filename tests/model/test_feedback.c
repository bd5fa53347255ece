/* SPDX-License-Identifier: MIT
 *
 * One memory of all layers: what is cached, what it costs, and what does not go with it. Gradients
 * by differences: tests/model/test_grad_lm.c, cuts of a text: test_lm.c; golden files compare the
 * numbers. */
#include "tests/support/token_masks.h"

enum { LAYERS = 3, ROWS = 40 };

static struct config of_memory(bool shared)
{
    struct config c = config_default(variant_find("feedback"), 12, 2, 6, 16, LAYERS, 11);

    c.feedback.shared = shared;
    c.max_seq = 4;
    return c;
}

/* Keys and values once for the model, or once a layer. */
Test(feedback, a_model_has_one_memory)
{
    static const struct {
        enum mem_kind kind;
        bool shared;
        size_t floats;
    } cases[] = {{MEM_HIDDEN, true, 12},
                 {MEM_HIDDEN, false, 12},
                 {MEM_KV, true, 24},
                 {MEM_KV, false, 24 * LAYERS}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct config c = of_memory(cases[i].shared);
        struct model m;
        model_open(&m, &c, "ref", 1, cases[i].kind, (struct extent){2, 4, ROWS});
        cr_expect_eq(m.arena.part[PART_MEMORY], 2 * ROWS * cases[i].floats * sizeof(float), "%zu",
                     i);
        model_close(&m);
    }
}

/* The first token of a text has nothing to attend to: what it reads does not matter. */
Test(feedback, the_own_step_is_not_seen)
{
    const struct config c = of_memory(true);
    struct model m;

    model_open(&m, &c, "ref", 1, MEM_NONE, (struct extent){1, 4, 0});
    lm_build_tables(&m.lm, &m.g);
    model_segment(&m, 0, 1, 0, 4, 4);
    const float first = m.lm.logits[0], second = m.lm.logits[c.V];
    for (int v = 0; v < 2; v++) {
        const struct param *const w =
            params_find(&m.lm.params, v ? "attn.v.weight" : "attn.k.weight");
        for (size_t i = 0; i < w->n; i++)
            w->data[i] *= -2;
    }
    lm_build_tables(&m.lm, &m.g);
    model_segment(&m, 0, 1, 0, 4, 4);
    cr_expect_eq(m.lm.logits[0], first);
    cr_expect_neq(m.lm.logits[c.V], second);
    model_close(&m);
}

Test(feedback, nothing_else_passes_between_tokens)
{
    struct err e;

    for (int wiring = 0; wiring < WIRING_COUNT; wiring++) {
        struct config c = of_memory(true);
        c.wiring = (enum wiring)wiring;
        cr_expect_eq(config_check(&c, &e) == OK, wiring == WIRING_PRE || wiring == WIRING_POST);
    }
    struct config c = of_memory(true);
    c.pos = pos_find("xl");
    cr_expect_eq(config_check(&c, &e), E_USAGE);
    c = of_memory(true);
    c.attn_bias = true;
    cr_expect_eq(config_check(&c, &e), E_USAGE);
}

/* Tokens run one by one, each with masks of its own. */
Test(feedback, tokens_have_masks_of_their_own)
{
    for (int shared = 0; shared < 2; shared++) {
        const struct config c = of_memory(shared);
        cr_expect_eq(hidden_in_all_tokens(&c), 0);
    }
}
