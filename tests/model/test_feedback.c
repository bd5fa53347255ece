/* SPDX-License-Identifier: MIT
 *
 * One memory of all layers: what is cached, and what a token sees and drops. Gradients
 * by differences: tests/model/test_grad_lm.c, cuts of a text: test_lm.c; golden files compare the
 * numbers. */
#include "tests/support/kernel/token_masks.h"
#include "variants/model/lm/feedback.h"

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
        cr_expect_eq(floats_remembered(&c, cases[i].kind, 4, ROWS), ROWS * cases[i].floats, "%zu",
                     i);
    }
}

/* The first token of a text has nothing to attend to: what it reads does not matter. */
Test(feedback, the_own_step_is_not_seen)
{
    const struct config c = of_memory(true);
    struct model m;

    model_open(&m, &c, "ref", 1, MEM_NONE, (struct extent){1, 4, 0});
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
}

/* Layers add the same to every token: attention nothing, feed-forward networks their last bias. What a
 * row of the memory has besides its embedding is then what was not dropped of that. */
Test(feedback, tokens_drop_apart)
{
    struct config c = of_memory(true);
    const int32_t tokens[4] = {3, 3, 3, 3};
    const int D = c.D;
    double shares_sum = 0, all = 0;
    struct model m;

    for (int l = 0; l <= LAYERS; l++) {
        all += exp(l * 0.5);
        shares_sum += l * exp(l * 0.5);
    }
    shares_sum /= all;
    c.wiring = WIRING_PRE;
    for (int drops = 0; drops < 2; drops++) {
        int found = 0;
        model_open_trained(&m, &c, "ref", 1, MEM_NONE, (struct extent){1, 4, 0});
        for (const struct param *w = m.lm.params.v; w < m.lm.params.v + m.lm.params.n; w++) {
            const bool bias = strstr(w->name, "ff.2.bias"), gone = strstr(w->name, "ff.2.weight");
            for (size_t e = 0; e < w->n && (bias || gone || strstr(w->name, "attn.v.weight")); e++)
                w->data[e] = bias ? 1 : 0;
            for (size_t e = 0; e < w->n && strcmp(w->name, "feedback.weight") == 0; e++)
                w->data[e] = (float)e / 2;
            found += bias + gone;
        }
        cr_assert_eq(found, 2 * LAYERS);
        lm_build_tables(&m.lm, &m.g);
        if (drops)
            m.lm.drop = (struct dropout){.p = 0.5f, .seed = 1, .step = 2};
        lm_forward(&m.lm, &m.g, tokens, 1, 4, 4, tokens, m.nll);
        const struct feedback *const t = m.lm.drive_data;
        /* Layer l is then l beyond the embedding, and the row what shares of that add up to, off by
         * a rounding of each sum of numbers below 8. */
        for (int x = 0; x < 4 * D && !drops; x++)
            cr_expect_leq(fabs((double)t->rows[x] - (double)t->in[x] - shares_sum), 64 * U, "%d",
                          x);
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < i; j++) {
                int apart = 0;
                for (int e = 0; e < D; e++)
                    apart += fabsf((t->rows[i * D + e] - t->in[i * D + e]) -
                                   (t->rows[j * D + e] - t->in[j * D + e])) > 0.1f;
                cr_expect_eq(apart > 0, drops, "tokens %d and %d", i, j);
            }
    }
}

/* Tokens run one by one, each with masks of its own. */
Test(feedback, tokens_have_masks_of_their_own)
{
    for (int shared = 0; shared < 2; shared++) {
        const struct config c = of_memory(shared);
        cr_expect_eq(hidden_in_all_tokens(&c), 0);
    }
}
