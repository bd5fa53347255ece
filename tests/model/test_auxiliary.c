/* SPDX-License-Identifier: MIT
 *
 * Losses of layers and of further targets: the numbers of their definition, their gradient, their end
 * in the course of a training, and none of it where nothing is trained. */
#include "tests/support/trained.h"
#include "variants/model/lm/auxiliary.h"

static struct config with_losses(const char *variant, bool layers, int targets, bool norm)
{
    struct config c = config_default(variant_find(variant), 12, 3, 5, 17, 3, 11);

    c.aux_layers = layers;
    c.aux_targets = targets;
    c.final_ln = norm;
    c.max_seq = 64;
    return c;
}

/* After backward. */
static double aux_loss(const struct trained *t)
{
    struct drive_result of;

    cr_assert(lm_result(&t->m.lm, 0, &of));
    return (double)of.number;
}

/* -log softmax(scale W row)[token], as the definition reads. */
static double nll_of(const struct param *W, double scale, const float *row, int token)
{
    double sum = 0, own = 0;

    for (int v = 0; v < W->shape[0]; v++) {
        double x = 0;
        for (int e = 0; e < W->shape[1]; e++)
            x += scale * (double)W->data[v * W->shape[1] + e] * (double)row[e];
        sum += exp(x);
        own = v == token ? x : own;
    }
    return log(sum) - own;
}

/* Without a final norm states are what the classifiers read. */
static double by_definition(const struct trained *t, double progress)
{
    const struct lm *const m = &t->m.lm;
    const struct auxiliary *const own = m->drive_data;
    const int N = m->c.N, D = m->c.D;
    const size_t n = (size_t)(bound.B * bound.L) * (size_t)D;
    double sum = 0;

    for (int l = 1; l <= N; l++)
        for (int k = 0; k < m->c.aux_targets; k++) {
            const struct param *const W =
                params_find(&m->params, kept_text("aux.%d.%d.weight", l - 1, k));
            const float *const h = own->states + (m->c.aux_layers ? (size_t)(l - 1) * n : 0);
            cr_expect_eq(W != NULL, l == N ? k > 0 : m->c.aux_layers, "%d, %d", l, k);
            if (!W || (l < N && progress >= l / (2.0 * N)))
                continue;
            for (int b = 0; b < B; b++)
                for (int i = 0; i + k < L; i++)
                    sum += (k ? 0.5 : 1) / (B * (L - k)) *
                           nll_of(W, (double)m->c.logit_scale, h + (b * L + i) * D,
                                  t->targets[b * L + i + k]);
        }
    return sum;
}

Test(auxiliary, is_what_its_definition_says)
{
    for (int layers = 0; layers < 2; layers++)
        for (int targets = 1 + !layers; targets <= 3; targets++)
            for (int step = 0; step <= 6; step++) {
                struct config c = with_losses("alrfou", layers, targets, false);
                c.logit_scale = 0.75f;
                struct trained t;
                open_trained(&t, &c, "ref", 1);
                t.m.lm.progress = step / 6.0;
                run_backward(&t);
                const double want = by_definition(&t, t.m.lm.progress);
                cr_expect_float_eq(aux_loss(&t), want, 1e-5 * want, "%d %d %d: %g, %g", layers,
                                   targets, step, aux_loss(&t), want);
                cr_expect_eq(want > 0, targets > 1 || step < 2, "layers are over at l/2N");
            }
}

/* Loss of the output and all others, which backward computes. */
static double all_losses(void *ctx)
{
    struct trained *const t = ctx;
    const double nll = loss(t);

    params_zero_grad(&t->m.lm.params);
    lm_backward(&t->m.lm, &t->m.g, t->tokens, t->targets, B, L);
    return nll + aux_loss(t);
}

/* The loss is a sum of means of numbers near ln V, of float states, as in test_grad_lm.c; of fixed masks
 * where something is dropped, under which no ReLU meets its corner. */
static void expect_derivatives(float drop)
{
    static const char *const variants_of[] = {"alrfou", "xl", "gtrxl", "llama", "switch"};

    for (size_t v = 0; v < ARRAY_LEN(variants_of); v++) {
        struct config c = with_losses(variants_of[v], v != 2, 1 + (v != 1), v % 2);
        struct trained t;
        c.logit_scale = drop > 0 ? 1 : 0.75f;
        if (c.ffn->aux)
            set_number(&c, "aux_coef", 0);
        open_trained(&t, &c, "ref", 1);
        avoid_corners(&t.m.lm.params);
        remember(&t);
        t.m.lm.drop = (struct dropout){.p = drop, .seed = SEED, .step = 9};
        const struct scalar f = {all_losses, &t, 24 * U * log(c.V), 0x1p-6};
        expect_derivatives_of(&t, &f, variants_of[v]);
    }
}

Test(auxiliary, has_its_derivative, .timeout = 120) { expect_derivatives(0); }
Test(auxiliary, has_its_derivative_with_dropout, .timeout = 120) { expect_derivatives(0.125f); }

/* A model without classifiers computes the same logits. */
Test(auxiliary, changes_no_prediction)
{
    struct config c = with_losses("alrfou", true, 2, true),
                  plain = with_losses("alrfou", false, 1, true);
    struct trained own, other;

    open_trained(&own, &c, "ref", 1);
    open_trained(&other, &plain, "ref", 1);
    for (int i = 0; i < other.m.lm.params.n; i++) {
        struct param *const w = &other.m.lm.params.v[i];
        const struct param *const from = params_find(&own.m.lm.params, w->name);
        cr_assert(from && from->n == w->n, "%s", w->name);
        memcpy(w->data, from->data, w->n * sizeof(*w->data));
    }
    cr_expect_eq(loss(&own), loss(&other));
    run_backward(&own);
    cr_expect_gt(aux_loss(&own), 1);
    run_backward(&other);
    struct drive_result of;
    cr_expect_not(lm_result(&other.m.lm, 0, &of), "no further loss");
}
