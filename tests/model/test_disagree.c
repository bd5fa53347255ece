/* SPDX-License-Identifier: MIT
 *
 * Disagreement of heads: its gradient is that of its definition, of outputs and of values, and
 * nothing else changes. */
#include "variants/model/attention/sublayer_attention.h"

#include "tests/support/trained.h"

static struct config of(const char *variant, const char *name, double coef)
{
    struct config c = config_default(variant_find(variant), 12, 3, 5, 17, 2, 11);

    set_number(&c, name, coef);
    c.max_seq = 64;
    return c;
}

/* The sum over pairs of heads of the cosines of one row [H,width]. */
static double alike(const float *x, int H, int width)
{
    double sum = 0;

    for (int i = 0; i < H; i++)
        for (int j = 0; j < H; j++) {
            double both = 0, of_i = 0, of_j = 0;
            for (int e = 0; e < width; e++) {
                const double a = (double)x[i * width + e], b = (double)x[j * width + e];
                both += a * b;
                of_i += a * a;
                of_j += b * b;
            }
            sum += both / sqrt(of_i * of_j);
        }
    return sum;
}

/* After a forward pass: of new rows, by the definition. */
static double likeness(const struct trained *t, bool values)
{
    const struct sublayers *const s = &t->m.lm.sublayers;
    const struct config *const c = &t->m.lm.c;
    const int H = values ? c->kv_heads : c->H, row = H * c->dh;
    double sum = 0;

    for (int i = 0; i < s->n; i++) {
        if (s->at[i].kind != &sublayer_attention)
            continue;
        const float *const x = s->work[i].array[values ? AT_V : AT_O];
        const int K = values ? s->at[i].memory.M + L : L;
        for (int b = 0; b < B; b++)
            for (int r = K - L; r < K; r++)
                sum += 0.75 / (B * L * H * H) * alike(x + (b * K + r) * row, H, c->dh);
    }
    return sum;
}

static double loss_of_outputs(void *ctx) { return loss(ctx) + likeness(ctx, false); }
static double loss_of_values(void *ctx) { return loss(ctx) + likeness(ctx, true); }

Test(disagree, has_its_derivative, .timeout = 120)
{
    static const struct {
        const char *variant, *of;
    } cases[] = {{"vanilla", "disagree_outputs"}, {"xl", "disagree_outputs"},
                 {"vanilla", "disagree_values"},  {"xl", "disagree_values"},
                 {"gqa", "disagree_values"},      {"gtrxl", "disagree_outputs"},
                 {"gated", "disagree_outputs"},   {"rope", "disagree_values"}};

    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        const bool values = strcmp(cases[k].of, "disagree_values") == 0;
        const struct config c = of(cases[k].variant, cases[k].of, 0.75);
        struct trained t;
        open_trained(&t, &c, "ref", 1);
        avoid_corners(&t.m.lm.params);
        remember(&t);
        const struct scalar f = {values ? loss_of_values : loss_of_outputs, &t, 8 * U * log(c.V),
                                 0x1p-6};
        expect_derivatives_of(&t, &f, kept_text("%s, %s", cases[k].variant, cases[k].of));
    }
}

/* The gradient is another, the loss of the text is not. */
Test(disagree, changes_the_gradient_only)
{
    const struct config with = of("vanilla", "disagree_outputs", 1),
                        without = of("vanilla", "disagree_outputs", 0);

    expect_other_gradient(&with, &without);
}
