/* SPDX-License-Identifier: MIT
 *
 * Layers without experts: with all of them a model is the one without experts; tensors and FLOP of a
 * model with some; texts. Derivatives: test_grad_lm.c; backends, files: test_ffn_model.c. */
#include "tests/support/trained.h"
#include "variants/model/layers/dense_layers.h"

static struct config with_experts(int N)
{
    struct config c = config_default(variant_find("llama"), 12, 3, 4, 17, N, 11);

    c.max_seq = 64;
    c.ffn = &ffn_moe;
    config_numbers_reset(&c);
    set_choice(&c, "moe_act", "swiglu");
    return c;
}

Test(dense_layers, all_are_a_model_without_experts)
{
    struct config plain = config_default(variant_find("llama"), 12, 3, 4, 9, 3, 11);
    struct config dense = with_experts(3);
    struct trained a, b;

    plain.max_seq = 64;
    plain.ffn = &ffn_geglu;
    config_numbers_reset(&plain);
    set_choice(&dense, "dense_layers", "0-2");
    set_choice(&dense, "dense_inner", "9");
    set_choice(&dense, "dense_ffn", "geglu");
    open_trained(&a, &plain, "ref", 1);
    open_trained(&b, &dense, "ref", 1);
    const struct params *const p = &a.m.lm.params, *const q = &b.m.lm.params;
    cr_assert_eq(p->n, q->n);
    cr_expect_eq(loss(&a), loss(&b));
    run_backward(&a);
    run_backward(&b);
    for (int i = 0; i < p->n; i++) {
        cr_assert_str_eq(p->v[i].name, q->v[i].name);
        cr_assert_eq(p->v[i].n, q->v[i].n, "%s", p->v[i].name);
        cr_expect_arr_eq(p->v[i].grad, q->v[i].grad, p->v[i].n * sizeof(float), "%s", p->v[i].name);
    }
    cr_expect_eq(lm_flop(&a.m.lm, B, L, 0, B * L), lm_flop(&b.m.lm, B, L, 0, B * L));
    cr_expect_eq(lm_grad_flop(&a.m.lm, B, L, 0), lm_grad_flop(&b.m.lm, B, L, 0));
}

static double flop_of(const struct config *c)
{
    struct trained t;

    open_trained(&t, c, "ref", 1);
    return lm_flop(&t.m.lm, B, L, 0, B * L);
}

static bool has_tensor(const struct trained *t, int layer, const char *name)
{
    return params_find(&t->m.lm.params, kept_text("layers.%d.%s", layer, name));
}

Test(dense_layers, some)
{
    struct config c = with_experts(3);
    const double all = flop_of(&c);
    struct trained t;

    set_choice(&c, "dense_layers", "0,2");
    open_trained(&t, &c, "ref", 1);
    for (int l = 0; l < 3; l++) {
        cr_expect_eq(has_tensor(&t, l, "ff.router.weight"), l == 1, "router of layer %d", l);
        cr_expect_eq(has_tensor(&t, l, "ff.g.weight"), l != 1, "gate of layer %d", l);
    }
    /* the best of 4 experts costs as much as a network of its width, besides the router */
    cr_expect_eq(all - flop_of(&c), 2 * (2.0 * B * L * 12 * 4));
    set_choice(&c, "dense_inner", "20");
    cr_expect_eq(flop_of(&c) - all, 2 * (6.0 * B * L * 12 * 3 - 2.0 * B * L * 12 * 4));
}

Test(dense_layers, texts)
{
    static const struct {
        const char *text, *is; /* NULL = refused */
    } tries[] = {
        {"", ""},
        {"0", "0"},
        {"0-2,5", "0-2,5"},
        {"0,1,2,5-5", "0-2,5"},
        {"0-1,2-3", "0-3"},
        {"1023", "1023"},
        {"1024", NULL},
        {"3,1", NULL},
        {"0-2,2", NULL},
        {"2-1", NULL},
        {"-1", NULL},
        {"1,", NULL},
        {"1-", NULL},
        {"1--2", NULL},
        {"0 2", NULL},
        {"all", NULL},
        {"99999999999999999999", NULL},
    };
    char many[1024] = "0", text[CHOICE_TEXT];
    struct config c = with_experts(8);

    for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
        const enum status st = dense_layers_parse(&c, tries[i].text, &failure);
        cr_assert_eq(st, tries[i].is ? OK : E_USAGE, "%s", tries[i].text);
        dense_layers_print(text, &c);
        if (tries[i].is)
            cr_expect_str_eq(text, tries[i].is);
    }
    for (int l = 1; l < MAX_LAYER_RANGES; l++)
        snprintf(many + strlen(many), sizeof(many) - strlen(many), ",%d", 2 * l);
    MUST(dense_layers_parse(&c, many, &failure));
    dense_layers_print(text, &c);
    cr_expect_str_eq(text, many);
    strcat(many, ",1000");
    cr_expect_eq(dense_layers_parse(&c, many, &failure), E_USAGE);
}

/* What makes no sense: test_refusals.c. */
Test(dense_layers, of_a_model)
{
    struct config c = with_experts(3);

    set_choice(&c, "dense_layers", "1-2");
    cr_expect(!dense_layers_has(&c, 0) && dense_layers_has(&c, 1) && dense_layers_has(&c, 2));
    c.ffn = &ffn_swiglu;
    cr_expect(!dense_layers_any(&c) && !dense_layers_has(&c, 1));
}
