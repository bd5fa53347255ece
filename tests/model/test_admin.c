/* SPDX-License-Identifier: MIT
 *
 * Admin: the pass before a training sets every omega from the variances of the branches below, which
 * are measured here another way, as the sum before the norm less the branch itself; nothing but
 * omega changes, and other models stay as they are. */
#include "variants/model/lm/admin.h"
#include "variants/model/lm/encoder.h"

#include "tests/support/trained.h"

static struct config of(const char *variant)
{
    struct config c = config_default(variant_find(variant), 12, 3, 4, 17, 3, 11);

    c.max_seq = 64;
    return c;
}

/* Of f of the i-th sub-layer, all omega being 1. */
static double variance(const struct sublayers *s, int i)
{
    const struct work *const w = &s->work[i];
    const int n = B * L * s->at[i].c->D;
    double mean = 0, square = 0;

    for (int k = 0; k < n; k++) {
        const double f = (double)w->sum[k] - (double)w->x[k];
        mean += f / n;
        square += f * f / n;
    }
    return square - mean * mean;
}

Test(admin, omega_is_what_the_branches_below_vary)
{
    const struct config c = of("admin");
    struct trained t;

    open_trained(&t, &c, "ref", 1);
    admin_profile(&t.m.lm, &t.m.g, t.tokens, B, L);
    const struct sublayers *const s = &t.m.lm.sublayers;
    double sum = 0, omega[6];
    cr_assert_eq(s->n, (int)ARRAY_LEN(omega));
    for (int i = 0; i < s->n; i++) {
        for (size_t e = 1; e < s->at[i].omega->n; e++)
            cr_expect_eq(s->at[i].omega->data[e], s->at[i].omega->data[0]);
        omega[i] = (double)s->at[i].omega->data[0];
    }
    for (int i = 0; i < s->n; i++)
        for (size_t e = 0; e < s->at[i].omega->n; e++)
            s->at[i].omega->data[e] = 1;
    (void)loss(&t);
    for (int i = 0; i < s->n; i++) {
        const double expected = i ? sqrt(sum) : 1;
        /* f is of the size of x: what a sum rounded to float loses of each is U |x + f| */
        cr_expect_float_eq(omega[i], expected, 64 * U * (1 + expected), "%d: %g is not %g", i,
                           omega[i], expected);
        sum += variance(s, i);
    }
}

Test(admin, an_encoder_has_its_own_sum)
{
    struct config c = of("admin");
    struct trained t;

    c.enc_layers = 2;
    open_trained(&t, &c, "ref", 1);
    admin_profile(&t.m.lm, &t.m.g, t.tokens, B, L);
    const struct sublayers *const encoder = encoder_layers(&t.m.lm);
    NUMBERS({encoder->at[0].omega->data[0], 1}, {t.m.lm.sublayers.at[0].omega->data[0], 1});
    for (int i = 2; i < encoder->n; i++)
        cr_expect_gt(encoder->at[i].omega->data[0], encoder->at[i - 1].omega->data[0]);
}

Test(admin, other_models_stay_as_they_are)
{
    const struct config c = of("vanilla");
    struct trained t;

    open_trained(&t, &c, "ref", 1);
    const double before = loss(&t);
    admin_profile(&t.m.lm, &t.m.g, t.tokens, B, L);
    cr_expect_eq(loss(&t), before);
}
