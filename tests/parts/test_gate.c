/* SPDX-License-Identifier: MIT
 *
 * What gates begin with: biases that let the stream through and hold back what is added. Their
 * equations: tests/check/test_op_cases.c, tests/golden/. */
#include "tests/support/loaded.h"
#include "tests/support/set_choice.h"

/* `set`: gate_bias, or NULL for the usual one. */
static void expect_bias(const char *name, const char *set, float want)
{
    struct config c = config_default(variant_find("gtrxl"), 8, 2, 4, 12, 1, 16);
    struct params p = {0};
    int i = 0;

    while (gates[i] && strcmp(gates[i]->name, name) != 0)
        i++;
    cr_assert_not_null(gates[i], "%s", name);
    c.gate = gates[i];
    config_numbers_reset(&c);
    if (set)
        set_choice(&c, "gate_bias", set);
    gates[i]->params(&c, "g.", &p);
    place_params(&p);
    params_init_training(&p, 1, 1, 1);
    const struct param *const b = params_find(&p, "g.bg");
    cr_expect_eq(b != NULL, want != 0, "%s", name);
    for (size_t k = 0; b && k < b->n; k++)
        cr_expect_eq(b->data[k], want, "%s: bias %g, not %g", name, (double)b->data[k],
                     (double)want);
}

/* Input and residual have none. */
Test(gates, begin_with_their_biases)
{
    expect_bias("gru", NULL, 2);
    expect_bias("output", NULL, 1);
    expect_bias("highway", NULL, 1);
    expect_bias("sigtanh", NULL, 1);
    expect_bias("gru", "-0.5", -0.5f);
    expect_bias("output", "3", 3);
    expect_bias("highway", "0.25", 0.25f);
    expect_bias("sigtanh", "1.5", 1.5f);
    expect_bias("input", NULL, 0);
    expect_bias("residual", NULL, 0);
}
