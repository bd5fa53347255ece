/* SPDX-License-Identifier: MIT
 *
 * Feed-forward networks without routing: every kind against its equation in double on every
 * backend, every gradient of the reference against finite differences, every backend's against the
 * reference's; keeping for training changes nothing; costs and configurations. */
#include "tests/support/kernel/ffn_case.h"

/* Of a config with any kind: with and without biases, with swish's beta and without. */
static struct config form_of(const struct ffn *ffn, int form, int D, int F)
{
    struct config c = ffn_config(ffn, D, F);

    c.ffn_bias = !(form & 1);
    if (ffn == &ffn_swish)
        set_choice(&c, "swish_beta", form & 2 ? "1" : "0");
    return c;
}
enum { FORMS = 4 };

/* Does nothing choose what a row is multiplied with? */
static bool plain(const struct ffn *ffn) { return !ffn->chose && !ffn->read_tokens; }

/* ---- the equations ------------------------------------------------------------------------ */

static void by_hand(const struct ffn_case *t, float *y)
{
    enum { WIDEST = 64 };
    const struct config *c = t->c;
    const bool gated = params_find(&t->p, "ff.g.weight");
    const struct param *const trained = params_find(&t->p, "ff.beta"), *const ln = params_find(
                                                                           &t->p, "ff.ln.weight");
    const double beta = trained ? (double)*trained->data : 1;
    double x[WIDEST], hidden[WIDEST];

    cr_assert(c->D <= WIDEST && c->F <= WIDEST);
    for (int row = 0; row < t->rows; row++) {
        to_doubles(x, t->x + row * c->D, c->D);
        for (int f = 0; f < c->F; f++) {
            const double one = ffn_map(t, "ff.1", f, x, c->D);
            hidden[f] = gated ? ffn_curve(c->ffn->name, ffn_map(t, "ff.g", f, x, c->D), beta) * one
                              : ffn_curve(c->ffn->name, one, beta);
        }
        if (ln)
            layer_norm(hidden, c->F, ln->data, params_find(&t->p, "ff.ln.bias")->data,
                       (double)c->ln_eps);
        for (int e = 0; e < c->D; e++)
            y[row * c->D + e] = (float)ffn_map(t, "ff.2", e, hidden, c->F);
    }
}

static void check_equation(const struct config *c, const char *backend, int threads, int rows)
{
    struct ffn_case t;
    const size_t n = (size_t)(rows * c->D);
    float *want = fenced(n), *add = normals(n, "add", 0, 1), *z = fenced(n);

    ffn_open(&t, c, backend, threads, rows, false);
    by_hand(&t, want);
    ffn_forward(&t, false);
    cr_expect_lt(case_error(t.y, want, n), 1, "%s, %s, rows %d: %.3g x its limit", backend,
                 c->ffn->name, rows, case_error(t.y, want, n));
    /* into a residual elsewhere: y is work space */
    c->ffn->forward(&t.g, c, t.p.v, t.y, t.x, rows, t.work, false, (struct act){.y = z, .add = add},
                    &t.drop);
    for (size_t i = 0; i < n; i++)
        want[i] += add[i];
    cr_expect_lt(case_error(z, want, n), 1, "%s, %s: with a residual", backend, c->ffn->name);
    cr_expect(guards_intact(z, n));
}

TEST_EACH(int *b, ffn, is_its_equation, every_backend())
{
    static const int shapes[][3] = {{1, 1, 1}, {1, 8, 13}, {5, 6, 9}, {33, 20, 37}}; /* rows D F */

    for (int k = 0; ffns[k] && !ffns[k]->build; k++)
        for (size_t s = 0; s < ARRAY_LEN(shapes) && plain(ffns[k]); s++)
            for (int form = 0; form < FORMS; form++) {
                const struct config c = form_of(ffns[k], form, shapes[s][1], shapes[s][2]);
                check_equation(&c, backends[*b]->name, 1 + form % 2, shapes[s][0]);
            }
}

/* Keeping values for backward does not change the arithmetic. */
TEST_EACH(int *b, ffn, keeping_changes_nothing, every_backend())
{
    for (int k = 0; ffns[k] && !ffns[k]->build; k++) {
        const struct config c = form_of(ffns[k], 0, 20, 37);
        struct ffn_case t;
        ffn_open(&t, &c, backends[*b]->name, 1, 33, false);
        ffn_forward(&t, true);
        float *const with = copied(t.y, 33 * 20);
        ffn_forward(&t, false);
        cr_expect_arr_eq(with, t.y, sizeof(float[33 * 20]), "%s, %s", backends[*b]->name,
                         ffns[k]->name);
    }
}

/* ---- gradients ---------------------------------------------------------------------------- */

Test(ffn, reference_is_the_derivative)
{
    for (int k = 0; ffns[k] && !ffns[k]->build; k++)
        for (int form = 0; form < FORMS; form++) {
            const bool corner = ffns[k]->act == ACT_RELU;
            const struct config c = form_of(ffns[k], form, 6, 9);
            struct ffn_case t;
            if (!plain(ffns[k]) || (corner && !c.ffn_bias)) /* biases keep it off its corner */
                continue;
            ffn_open(&t, &c, "ref", 1, 7, corner);
            ffn_differentiate(&t, kept_text("%s form %d", ffns[k]->name, form), 0x1p-7);
        }
}

/* Backward asks for the masks again: they are the same. */
Test(ffn, dropout_is_differentiated)
{
    for (int k = 0; ffns[k] && !ffns[k]->build; k++) {
        const struct config c = form_of(ffns[k], 0, 6, 9);
        struct ffn_case t;
        if (!plain(ffns[k]))
            continue;
        ffn_open(&t, &c, "ref", 1, 7, ffns[k]->act == ACT_RELU);
        t.drop = (struct dropout){.p = 0.25f, .seed = SEED, .step = 5};
        ffn_differentiate(&t, ffns[k]->name, 0x1p-7);
    }
}

TEST_EACH(int *b, ffn, backward_as_the_reference, every_backend(), .timeout = 240)
{
    static const int shapes[][3] = {{1, 8, 13}, {5, 6, 9}, {150, 33, 37}}; /* rows D F */

    for (int k = 0; ffns[k] && !ffns[k]->build; k++)
        for (size_t s = 0; s < ARRAY_LEN(shapes) && plain(ffns[k]); s++)
            for (int form = 0; form < FORMS; form++) {
                const struct config c = form_of(ffns[k], form, shapes[s][1], shapes[s][2]);
                ffn_compare(&c, backends[*b]->name, 1 + form % 2, shapes[s][0],
                            form == 1 ? 0.25f : 0);
            }
}

/* ---- parameters, costs, configurations ---------------------------------------------------- */

Test(ffn, lists)
{
    for (int k = 0; ffns[k]; k++)
        cr_expect_eq(ffn_find(ffns[k]->name), ffns[k]);
    cr_expect(!ffn_find("nothing") && !ffn_find("") && ffn_find("swiglu"));
}

Test(ffn, parameters_are_found_by_name)
{
    struct params p = {0};
    struct config c = form_of(&ffn_swiglu, 0, 8, 13);

    ffn_swiglu.params(&c, "layers.1.ff.", &p);
    cr_expect_eq(p.n, 6);
    cr_expect(params_find(&p, "layers.1.ff.g.weight") && params_find(&p, "layers.1.ff.2.bias"));
    cr_expect_eq(param_out(params_find(&p, "layers.1.ff.g.weight")), 26); /* one product */
    params_free(&p);
    c.ffn_bias = false;
    ffn_swiglu.params(&c, "ff.", &p);
    cr_expect(p.n == 3 && !params_find(&p, "ff.1.bias"));
    params_free(&p);
    c = form_of(&ffn_swish, 2, 8, 13);
    ffn_swish.params(&c, "ff0.", &p);
    cr_expect(p.n == 5 && params_find(&p, "ff0.beta")->n == 1);
    params_free(&p);
}

/* Two floating-point operations for each weight of a matrix that a row passes. */
Test(ffn, flop_counts_every_weight)
{
    for (int k = 0; ffns[k] && !ffns[k]->build; k++) {
        const struct config c = form_of(ffns[k], 0, 8, 13);
        struct params p = {0};
        double weights = 0;
        if (!plain(ffns[k]))
            continue;
        ffns[k]->params(&c, "ff.", &p);
        for (int i = 0; i < p.n; i++)
            weights += p.v[i].rank == 2 ? (double)p.v[i].n : 0;
        cr_expect_eq(ffns[k]->flop(&c, 5), 2 * 5 * weights, "%s", ffns[k]->name);
        params_free(&p);
    }
}
