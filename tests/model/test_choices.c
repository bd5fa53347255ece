/* SPDX-License-Identifier: MIT
 *
 * What can be chosen of a model. That choices are the same in options, files and tables is tested
 * with these (tests/plan/test_choices.c). */
#include "variants/model/lm/lm.h"

#include <criterion/criterion.h>

TestSuite(model_choices, .timeout = 240);

/* Another value than a model usually has, NULL after the last. */
static const char *other_value(const struct choice *row, int n)
{
    static const struct {
        const char *name, *values[3];
    } own[] = {
        {"halt_eps", {"0.25", "0.5"}},
        {"exit_tau", {"0.25", "1"}},
        {"dtype", {"bf16", "q4_1"}},
        {"kv_dtype", {"bf16", "q8"}},
        {"act_dtype", {"q8"}},
        {"exit_patience", {"3"}},
        {"clamp_len", {"5"}},
        {"same_length", {"1"}},
        {"mask", {"window=4", "stride=2"}},
        {"mask_heads", {"0,0"}},
        {"mask_layers", {"0,0"}},
        {"head_windows", {"3", "2,4;3,0"}},
        {"layer_windows", {"5", "4,0"}},
        {"layer_rope_base", {"100", "10000,0"}},
        {"rope_scaling", {"linear"}},
        {"rope_factor", {"2", "2.5"}},
        {"mla", {"absorbed", "expanded"}},
    };

    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (strcmp(own[i].name, row->name) == 0)
            return own[i].values[n];
    cr_assert_fail("no value of %s is tried", row->name);
    return NULL;
}

/* The parameters of both are the same, in name and size. */
static void expect_same_parameters(const struct params *a, const struct params *b, const char *what)
{
    cr_assert_eq(a->n, b->n, "%s", what);
    for (int i = 0; i < a->n; i++)
        cr_expect(strcmp(a->v[i].name, b->v[i].name) == 0 && a->v[i].n == b->v[i].n, "%s: %s is %s",
                  what, a->v[i].name, b->v[i].name);
}

/* What a checkpoint may be scored with leaves its parameters as they are. */
Test(model_choices, no_parameter_depends_on_what_evaluation_sets)
{
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++) {
        const struct choice *const row = &model_choices[i];
        int tried = 0;
        for (int v = 0; variants[v] && row->at_eval; v++) {
            struct config usual = config_default(variants[v], 24, 2, 12, 48, 2, 16);
            usual.dtype = i == CHOICE_act_dtype ? ELEM_Q8 : usual.dtype;
            struct lm before = {0};
            if (!choice_applies(row, &usual, SCOPE_MODEL) || lm_init(&before, &usual, NULL) != OK)
                continue;
            for (int n = 0; other_value(row, n); n++) {
                struct config c = usual;
                struct lm after = {0};
                if (choice_parse(row, &c, other_value(row, n), NULL) != OK ||
                    lm_init(&after, &c, NULL) != OK)
                    continue;
                tried++;
                expect_same_parameters(&before.params, &after.params, row->name);
                lm_free(&after);
            }
            lm_free(&before);
        }
        cr_expect(tried > 0 || !row->at_eval, "no model has %s", row->name);
    }
}
