/* SPDX-License-Identifier: MIT
 *
 * What mixtures of experts of published models have: gated and clamped units, a bias of the router,
 * gates by other rules, groups within which rows choose, an expert that serves every row. Against a
 * plain program in double on every backend, gradients of the reference against finite differences,
 * every backend's against the reference's. */
#include "tests/support/kernel/ffn_case.h"

enum { D = 6, F = 9, ROWS = 14, MAX_E = 8 };

/* Settings by name; experts of one group are neighbours. */
static const struct mixture {
    const char *act, *norm;
    int experts, k, groups, within, shared;
    bool bias, router_bias, shared_gate;
    double scale;
} forms[] = {
    {"swiglu", "always", 4, 2, .scale = 1},
    {"swiglu", "never", 6, 3, .scale = 2.5, .bias = true},
    {"geglu", "several", 4, 1, .scale = 1, .router_bias = true},
    {"geglu_tanh", "always", 4, 1, .scale = 0.5, .bias = true},
    {"swiglu_clamped", "always", 5, 3, .scale = 1, .bias = true, .router_bias = true},
    {"swiglu", "never", 8, 2, .groups = 4, .within = 2, .scale = 1.5},
    {"swiglu", "always", 6, 2, .groups = 2, .within = 1, .shared = 7, .scale = 1},
    {"swiglu", "never", 4, 2, .shared = 5, .shared_gate = true, .scale = 1},
    {"swiglu_clamped", "never", 3, 3, .shared = 9, .shared_gate = true, .bias = true, .scale = 1},
    {"relu", "always", 4, 2, .shared = 4, .bias = true, .scale = 1},
    {"swish", "never", 4, 2, .shared = 11, .shared_gate = true, .scale = 0.25},
};

static bool is_clamped(const struct mixture *f) { return strcmp(f->act, "swiglu_clamped") == 0; }

static struct config config_of(const struct mixture *f)
{
    struct config c = ffn_config(&ffn_moe, D, F);

    set_choice(&c, "moe_act", f->act);
    set_choice(&c, "moe_norm", f->norm);
    set_number(&c, "experts", f->experts);
    set_number(&c, "moe_k", f->k);
    set_number(&c, "route_groups", f->groups ? f->groups : 1);
    set_number(&c, "route_within", f->within ? f->within : 1);
    set_number(&c, "moe_shared", f->shared);
    if (f->shared)
        set_number(&c, "moe_shared_gate", f->shared_gate);
    set_number(&c, "router_bias", f->router_bias);
    set_number(&c, "moe_scale", f->scale);
    if (is_clamped(f)) {
        set_number(&c, "moe_limit", 0.75);
        set_number(&c, "moe_beta", 1.5);
    }
    set_number(&c, "aux_coef", 0.5);
    c.ffn_bias = f->bias;
    return c;
}

/* Preferences so clear that no step of a difference changes a choice, and biases that count, which
 * begin as 0. */
static void open_mixture(struct ffn_case *t, const struct config *c, const char *backend,
                         int threads, bool corners)
{
    ffn_open(t, c, backend, threads, ROWS, corners);
    for (struct param *w = t->p.v; w < t->p.v + t->p.n; w++) {
        for (size_t k = 0; strstr(w->name, "router.weight") && k < w->n; k++)
            w->data[k] *= 2;
        for (size_t k = 0; strstr(w->name, "router.bias") && k < w->n; k++)
            w->data[k] = 0.25f * (float)((k * 5 + 3) % 7) - 0.5f;
    }
    params_pack(&t->p, &t->g);
}

/* ---- the plain program -------------------------------------------------------------------- */

static double unit(const char *act, double gate, double other)
{
    if (strcmp(act, "relu") == 0 || strcmp(act, "swish") == 0)
        return ffn_curve(act, other, 1);
    if (strcmp(act, "swiglu_clamped") != 0)
        return ffn_curve(act, gate, 1) * other;
    gate = fmin(gate, 0.75);
    return gate * sigma(1.5 * gate) * (fmin(fmax(other, -0.75), 0.75) + 1);
}

/* y += by times the expert of this name, of width n, the e-th of all that its tensors hold. */
static void serve(const struct ffn_case *t, const struct mixture *f, const char *of, int e, int n,
                  double by, const double x[D], double y[D])
{
    char maps[3][32];
    double hidden[16];

    for (int m = 0; m < 3; m++)
        snprintf(maps[m], sizeof(maps[m]), "ff.%s.%c", of, "g12"[m]);
    for (int i = 0; i < n; i++)
        hidden[i] = unit(f->act, ffn_map(t, maps[0], e * n + i, x, D),
                         ffn_map(t, maps[1], e * n + i, x, D));
    for (int d = 0; d < D; d++)
        y[d] += by * ffn_map(t, maps[2], e * D + d, hidden, n);
}

static void row_by_hand(const struct ffn_case *t, const struct mixture *f, const double x[D],
                        double y[D])
{
    const int E = f->experts, groups = f->groups ? f->groups : 1, n = E / groups;
    double p[MAX_E], best[MAX_E] = {0}, all = 0, chosen = 0;
    bool open[MAX_E], taken[MAX_E] = {false};

    for (int e = 0; e < E; e++)
        all += p[e] = exp(ffn_map(t, "ff.router", e, x, D));
    for (int e = 0; e < E; e++)
        best[e / n] = fmax(best[e / n], p[e] /= all);
    for (int e = 0; e < E; e++) {
        int better = 0;
        for (int g = 0; g < groups; g++)
            better += best[g] > best[e / n];
        open[e] = !f->groups || better < f->within;
    }
    for (int k = 0; k < f->k; k++) {
        int at = -1;
        for (int e = 0; e < E; e++)
            at = open[e] && !taken[e] && (at < 0 || p[e] > p[at]) ? e : at;
        taken[at] = true;
        chosen += p[at];
    }
    const bool norms =
        strcmp(f->norm, "always") == 0 || (strcmp(f->norm, "several") == 0 && f->k > 1);
    memset(y, 0, sizeof(double) * D);
    for (int e = 0; e < E; e++)
        if (taken[e])
            serve(t, f, "e", e, F, f->scale * p[e] / (norms ? chosen : 1), x, y);
    const double gate = f->shared_gate ? sigma(ffn_map(t, "ff.shared_gate", 0, x, D)) : 1;
    if (f->shared)
        serve(t, f, "shared", 0, f->shared, gate, x, y);
}

TEST_EACH(int *b, moe_published, is_its_equation, every_backend())
{
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        const struct config c = config_of(&forms[i]);
        struct ffn_case t;
        float want[ROWS * D];
        cr_assert_eq(config_check(&c, &failure), OK, "form %zu: %s", i, failure.msg);
        open_mixture(&t, &c, backends[*b]->name, 1 + (int)i % 2, false);
        ffn_forward(&t, i % 3 == 0);
        for (int row = 0; row < ROWS; row++) {
            double x[D], y[D];
            to_doubles(x, t.x + row * D, D);
            row_by_hand(&t, &forms[i], x, y);
            to_floats(want + row * D, y, D);
        }
        cr_expect_lt(case_error(t.y, want, ROWS * D), 1, "%s, form %zu: %g", backends[*b]->name, i,
                     case_error(t.y, want, ROWS * D));
    }
}

/* ---- gradients ---------------------------------------------------------------------------- */

/* Arguments stay near biases of +1 and -1, beyond the limit of 0.75: half of the gates and all of
 * the other operands are clamped there, so a limit of 1.5, which clamps none, has a turn, too. */
static void expect_derivative(const struct config *c, size_t i, const char *limit)
{
    struct ffn_case t;

    open_mixture(&t, c, "ref", 1, true);
    ffn_differentiate(&t, kept_text("form %zu, limit %s", i, limit), 0x1p-11);
}

Test(moe_published, reference_is_the_derivative)
{
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        struct config c = config_of(&forms[i]);
        expect_derivative(&c, i, "0.75");
        if (!is_clamped(&forms[i]))
            continue;
        set_number(&c, "moe_limit", 1.5);
        expect_derivative(&c, i, "1.5");
    }
}

TEST_EACH(int *b, moe_published, backward_as_the_reference, every_backend())
{
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        struct config c = config_of(&forms[i]);
        ffn_compare(&c, backends[*b]->name, 1 + (int)i % 2, ROWS, 0);
        c.D = 33, c.F = 40;
        ffn_compare(&c, backends[*b]->name, 1 + (int)i % 2, 150, 0);
    }
}

/* ---- costs and configurations ------------------------------------------------------------- */

Test(moe_published, flop_counts_three_maps_and_the_shared_expert)
{
    const struct config c = config_of(&forms[7]);

    NUMBERS({ffn_moe.flop(&c, 10), 2.0 * 10 * D * 4 + 6.0 * D * (20 * F + 10 * 5) + 2.0 * 10 * D});
}
