/* SPDX-License-Identifier: MIT
 *
 * Mixture of experts (Shazeer et al. 2017, arXiv:1701.06538; one expert: Fedus et al. 2021, "Switch
 * Transformers", arXiv:2101.03961; two: Lepikhin et al. 2020, "GShard", arXiv:2006.16668 without
 * its random choice). Each row goes to the k experts with the largest router probability:
 *
 *   p   = softmax(W_r x)
 *   g   = p for k = 1, p / (sum of the k) otherwise
 *   y   = sum over the k largest: g_e (W_2e act(W_1e x + b_1e) + b_2e)      act = relu, usually
 *   aux = E sum_e f_e mean(p_e)
 *
 * or, with gated units, W_2e (f(W_ge x + b_ge) (.) (W_1e x + b_1e)) + b_2e (ffn.c). Files of
 * published models say more: whether gates are divided by their sum, what they are multiplied by, a
 * bias of the router, clamped units (OpenAI 2025, arXiv:2508.10925), groups of experts within which
 * a row chooses, those with the largest p (DeepSeek-AI 2024, arXiv:2405.04434), and an expert that
 * serves every row (Dai et al. 2024, "DeepSeekMoE", arXiv:2401.06066), maybe times sigma(w x).
 *
 * f_e is the share of rows whose first choice is e, a constant in backward.
 *
 * An expert takes at most `capacity` rows, unless that is 0: first choices of all rows in order,
 * then second choices. A choice whose expert is full contributes nothing, and the other gate keeps
 * its value. Rows of one expert are gathered, so that its maps are ordinary products.
 *
 * Prototypes (Yang et al. 2021, "M6-T: Exploring Sparse Expert Models and Beyond",
 * arXiv:2105.15082): the experts are in groups, p is a softmax within each group, and the best of
 * each group serves the row:
 *
 *   y = sum over groups: p_e FFN_e(x)
 *
 * Hash layers (Roller et al. 2021, "Hash Layers For Large Sparse Models", arXiv:2106.04426): no
 * router, the token's number chooses, e = table[token]. At first the table deals tokens to the
 * experts in turn, which balances tokens that are equally frequent. A row of no text counts as the
 * token of its number. */
#include "moe.h"

#include "variants/parts/dropout.h"
#include "variants/parts/linear.h"
#include "variants/parts/parts.h"

bool moe_in_groups(const struct config *c) { return c->ffn == &ffn_proto; }
bool moe_by_token(const struct config *c) { return c->ffn == &ffn_hash; }
int moe_groups(const struct config *c) { return moe_in_groups(c) ? moe_of(c)->groups : 1; }

int moe_k(const struct config *c)
{
    return moe_by_token(c) ? 1 : moe_in_groups(c) ? moe_of(c)->groups : moe_of(c)->k;
}

static bool by_best(const struct config *c) { return c->ffn == &ffn_moe; }

static bool has_router(const struct config *c) { return !moe_by_token(c); }
static bool has_shared(const struct config *c) { return moe_of(c)->shared > 0; }

bool moe_norms(const struct config *c)
{
    const struct moe *const m = moe_of(c);

    return by_best(c) && (m->norm == MOE_NORM_ALWAYS || (m->norm == MOE_NORM_SEVERAL && m->k > 1));
}

static const char *const norm_name[] = {
    [MOE_NORM_SEVERAL] = "several", [MOE_NORM_ALWAYS] = "always", [MOE_NORM_NEVER] = "never", NULL};

/* The last ones are of gated units. */
enum { FIRST_GATED = 4, CLAMPED = 7 };
static const char *const act_name[] = {"relu",  "gelu",       "gelu_tanh",      "swish", "swiglu",
                                       "geglu", "geglu_tanh", "swiglu_clamped", NULL};

enum act_kind moe_act(const struct config *c)
{
    static const enum act_kind kind[] = {ACT_RELU,  ACT_GELU, ACT_GELU_TANH, ACT_SWISH,
                                         ACT_SWISH, ACT_GELU, ACT_GELU_TANH, ACT_SWISH};

    return kind[moe_of(c)->act];
}

bool moe_gated(const struct config *c) { return moe_of(c)->act >= FIRST_GATED; }
bool moe_clamps(const struct config *c) { return moe_of(c)->act == CLAMPED; }

static const struct choice moe_choices[] = {
    ROW_INT(struct moe, experts, "experts", 1, MOE_EXPERTS, "feed-forward networks of a layer",
            .scope = SCOPE_LAYER, .setting = true),
    ROW_INT(struct moe, k, "moe_k", 1, MOE_EXPERTS, "of them that a token takes",
            .scope = SCOPE_LAYER, .setting = true, .applies = by_best),
    ROW_INT(struct moe, capacity, "capacity", 0, 1 << 20,
            "rows that an expert takes, 0 = any number", .absent = "0", .applies = by_best,
            SETTING),
    ROW_REAL(struct moe, aux_coef, "aux_coef", 0, FLT_MAX, "weight of the auxiliary loss",
             .applies = by_best, SETTING),
    ROW_INT(struct moe, groups, "moe_groups", 1, MOE_EXPERTS,
            "groups of experts, each of which serves a token", .scope = SCOPE_LAYER,
            .setting = true, .applies = moe_in_groups),
    ROW_WORD(struct moe, act, "moe_act", act_name, "activation of the experts", .absent = "relu",
             .if_other = true, SETTING),
    ROW_REAL(struct moe, beta, "moe_beta", 1e-6, 1 << 20, "beta of the swish of clamped units",
             .absent = "1.702", .if_other = true, .applies = moe_clamps, SETTING),
    ROW_REAL(struct moe, limit, "moe_limit", 1e-6, 1 << 20, "bound of clamped units", .absent = "7",
             .if_other = true, .applies = moe_clamps, SETTING),
    ROW_FLAG(struct moe, router_bias, "router_bias", "1: the router has a bias", .absent = "0",
             .scope = SCOPE_LAYER, .if_other = true, .applies = has_router, SETTING),
    ROW_WORD(struct moe, norm, "moe_norm", norm_name,
             "whether gates are divided by their sum: of several experts, always, never",
             .absent = "several", .scope = SCOPE_LAYER, .if_other = true, .applies = by_best,
             SETTING),
    ROW_REAL(struct moe, scale, "moe_scale", 0, 1 << 20, "what gates are multiplied by",
             .absent = "1", .scope = SCOPE_LAYER, .if_other = true, .applies = by_best, SETTING),
    ROW_INT(struct moe, route_groups, "route_groups", 1, MOE_EXPERTS,
            "groups of experts, within the best of which a token chooses", .absent = "1",
            .scope = SCOPE_LAYER, .if_other = true, .applies = by_best, SETTING),
    ROW_INT(struct moe, route_within, "route_within", 1, MOE_EXPERTS,
            "of these groups, those within which it chooses", .absent = "1", .scope = SCOPE_LAYER,
            .if_other = true, .applies = by_best, SETTING),
    ROW_INT(struct moe, shared, "moe_shared", 0, 1 << 24,
            "width of an expert that serves every token, 0 = none", .absent = "0",
            .scope = SCOPE_LAYER, .if_other = true, SETTING),
    ROW_FLAG(struct moe, shared_gate, "moe_shared_gate", "1: its output has a gate", .absent = "0",
             .scope = SCOPE_LAYER, .if_other = true, .applies = has_shared, SETTING),
    {0},
};

static const struct moe usual_moe = {.experts = 4,
                                     .k = 1,
                                     .aux_coef = 0.01f,
                                     .groups = 2,
                                     .beta = 1.702f,
                                     .limit = 7,
                                     .scale = 1,
                                     .route_groups = 1,
                                     .route_within = 1};

/* What a model has no use for is as usual: its files do not say it. */
static enum status check_idle(const struct config *c, const struct moe *m, struct err *e)
{
    for (const struct choice *row = moe_choices; row->name; row++)
        if (choice_is_idle(row, c) && !choice_equal(row, m, &usual_moe))
            return fail(e, E_USAGE, "%s: %s, which its experts do not have  -> leave it out",
                        c->variant->name, row->name);
    return OK;
}

/* Groups within which a row chooses. */
static enum status check_route(const struct config *c, const struct moe *m, struct err *e)
{
    if (m->experts % m->route_groups || m->route_within > m->route_groups)
        return fail(e, E_USAGE,
                    "%s: within %d of route_groups %d of %d experts  -> use a divisor, and "
                    "route_within of 1 to that many",
                    c->variant->name, m->route_within, m->route_groups, m->experts);
    if (m->k > m->experts / m->route_groups * m->route_within)
        return fail(e, E_USAGE, "%s: moe_k %d of the %d experts that a row may choose  -> use less",
                    c->variant->name, m->k, m->experts / m->route_groups * m->route_within);
    return OK;
}

static enum status moe_check(const struct config *c, const void *numbers, struct err *e)
{
    const struct moe *const m = numbers;

    if (moe_in_groups(c) && m->experts % m->groups)
        return fail(e, E_USAGE, "%s: moe_groups %d does not divide %d experts  -> use a divisor",
                    c->variant->name, m->groups, m->experts);
    if (!by_best(c) && m->capacity)
        return fail(e, E_USAGE, "%s: capacity %d with ffn %s, which has none  -> use 0",
                    c->variant->name, m->capacity, c->ffn->name);
    if (by_best(c) && m->k > m->experts)
        return fail(e, E_USAGE, "%s: %d of %d experts for each row  -> use moe_k of at most %d",
                    c->variant->name, m->k, m->experts, m->experts);
    TRY(check_idle(c, m, e));
    return by_best(c) ? check_route(c, m, e) : OK;
}

static const struct part_numbers moe_numbers = {moe_choices, .size = NUMBERS_SIZE(struct moe),
                                                &usual_moe, moe_check};

static double moe_flop(const struct config *c, int rows)
{
    const double router = moe_by_token(c) ? 0 : 2.0 * rows * c->D * moe_of(c)->experts;

    const double units = (double)moe_most_places(c, rows) * c->F + (double)rows * moe_of(c)->shared;

    return router + (moe_gated(c) ? 6.0 : 4.0) * c->D * units +
           (moe_of(c)->shared_gate ? 2.0 * rows * c->D : 0);
}

static void route(const struct engine *g, const struct config *c, const struct moe_weights *of,
                  const float *x, int rows, const struct moe_work *w)
{
    const int groups = moe_groups(c), n = moe_of(c)->experts / groups;

    if (!moe_by_token(c)) {
        linear_forward(g, of->router, of->router_bias, w->p, x, rows, (struct act){.y = w->p});
        rows_softmax(g, w->p, rows * groups, n);
    }
    moe_assign(c, w, rows);
}

static void hash_tokens(const struct config *c, const struct param *w, const int32_t *tokens,
                        int rows, float *work)
{
    const struct moe_work to = moe_work_of(c, rows, work);
    const struct param *const table = moe_weights_of(c, w).table;

    CHECK(!tokens || c->V);
    for (int t = 0; t < rows; t++) {
        to.choice[t] = tokens ? (int32_t)table->data[tokens[t]] : t % moe_of(c)->experts;
        to.gate[t] = 1;
    }
}

/* ---- forward ------------------------------------------------------------------------------ */

static int team(const struct engine *g, const struct config *c, int rows)
{
    enum { PARALLEL_MIN = 1 << 15 }; /* elements */

    return (ptrdiff_t)rows * c->D > PARALLEL_MIN ? g->threads : 1;
}

/* Copy the rows of all served choices to the experts' places; or `back`: add the rows of these places
 * to those of the choices. Multiplied by their gates if `gated`. */
static void move_rows(const struct engine *g, const struct config *c, const struct moe_work *w,
                      float *to, const float *from, int rows, bool back, bool gated)
{
    const int D = c->D;

#pragma omp parallel for num_threads(team(g, c, rows))
    for (int t = 0; t < rows; t++)
        for (int k = 0; k < moe_k(c); k++) {
            const ptrdiff_t at = (ptrdiff_t)t * moe_k(c) + k, place = w->place[at];
            const float by = gated ? w->gate[at] : 1;
            float *const y = to + (back ? t : place) * D;
            const float *const x = from + (back ? place : t) * D;
            for (int e = 0; place >= 0 && e < D; e++)
                y[e] = back ? y[e] + by * x[e] : by * x[e];
        }
}

static const struct param *share(struct param *one, const struct param *all, int e)
{
    const int rows = all && all->rank == 3 ? all->shape[1] : 1;

    if (!all)
        return NULL;
    *one = param_rows(all, (ptrdiff_t)e * rows, rows);
    if (all->rank == 2) {
        one->rank = 1;
        one->shape[0] = all->shape[1];
    }
    return one;
}

/* One expert's matrices of [experts,out,in], and its vectors of [experts,n]. */
static struct moe_expert expert_of(const struct config *c, const struct moe_weights *of,
                                   const struct moe_work *w, int e)
{
    const ptrdiff_t at = w->first[e], D = c->D, F = c->F;
    struct moe_expert x = {.gated = of->all.wg,
                           .bias = of->all.b1,
                           .n = (int)(w->first[e + 1] - at),
                           .F = c->F,
                           .in = w->in + at * D,
                           .hidden = w->hidden + at * F,
                           .pre = w->pre ? w->pre + at * F * (ptrdiff_t)moe_pre_units(c) : NULL,
                           .out = w->out + at * D};

    share(&x.wg, of->all.wg, e), share(&x.bg, of->all.bg, e);
    share(&x.w1, of->all.w1, e), share(&x.b1, of->all.b1, e);
    share(&x.w2, of->all.w2, e), share(&x.b2, of->all.b2, e);
    return x;
}

/* The one that serves every row. */
static struct moe_expert shared_of(const struct config *c, const struct moe_weights *of,
                                   const struct moe_work *w, const float *x, int rows)
{
    const struct moe_expert_weights *const s = &of->shared;
    struct moe_expert one = {.gated = s->wg,
                             .bias = s->b1,
                             .w1 = *s->w1,
                             .w2 = *s->w2,
                             .n = rows,
                             .F = moe_of(c)->shared,
                             .in = x,
                             .hidden = w->shared_hidden,
                             .pre = w->shared_pre,
                             .out = w->shared_out};

    if (s->wg)
        one.wg = *s->wg;
    if (s->b1)
        one.b1 = *s->b1, one.b2 = *s->b2;
    if (s->bg)
        one.bg = *s->bg;
    return one;
}

/* y += its output, times its gate. Its units are not dropped: trainings that drop refuse experts. */
static void serve_all(const struct engine *g, const struct config *c, const struct moe_weights *of,
                      const struct moe_work *w, float *y, const float *x, int rows)
{
    const struct moe_expert one = shared_of(c, of, w, x, rows);
    const ptrdiff_t D = c->D;

    moe_expert_hidden(g, c, &one);
    moe_expert_output(g, &one);
    if (of->shared_gate)
        linear_forward(g, of->shared_gate, NULL, w->shared_gate, x, rows,
                       (struct act){.kind = ACT_SIGMOID, .y = w->shared_gate});
#pragma omp parallel for num_threads(team(g, c, rows))
    for (int t = 0; t < rows; t++) {
        const float by = of->shared_gate ? w->shared_gate[t] : 1;
        for (int e = 0; e < D; e++)
            y[t * D + e] += by * one.out[t * D + e];
    }
}

static void moe_forward(const struct engine *g, const struct config *c, const struct param *param,
                        float *y, const float *x, int rows, float *work, bool keep,
                        struct act epilogue, const struct dropout *drop)
{
    const struct moe_work w = moe_work_of(c, rows, work);
    const struct moe_weights of = moe_weights_of(c, param);
    const int E = moe_of(c)->experts;

    route(g, c, &of, x, rows, &w);
    move_rows(g, c, &w, w.in, x, rows, false, false);
    for (int e = 0; e < E; e++) {
        const struct moe_expert one = expert_of(c, &of, &w, e);
        if (one.n)
            moe_expert_hidden(g, c, &one);
    }
    dropout(drop, DROP_HIDDEN, w.hidden, (size_t)w.first[E] * (size_t)c->F, g->threads);
    for (int e = 0; e < E; e++) {
        const struct moe_expert one = expert_of(c, &of, &w, e);
        if (one.n)
            moe_expert_output(g, &one);
    }
    memset(y, 0, sizeof(float) * (size_t)rows * (size_t)c->D);
    move_rows(g, c, &w, y, w.out, rows, true, true);
    if (moe_of(c)->shared)
        serve_all(g, c, &of, &w, y, x, rows);
    linear_epilogue(g, epilogue, y, rows, c->D);
}

/* ---- backward ----------------------------------------------------------------------------- */

/* d_p [rows,E] of the router's probabilities, from those of the gates, d_gate_k = dy . FFN_k(x),
 * and of the auxiliary loss. A choice that was not served has no part in y, but if gates are
 * normalised its p is part of their sum. */
static void router_grad(const struct engine *g, const struct config *c, const struct moe_work *w,
                        float *d_p, float *d_gate, const float *d_y, int rows)
{
    const int E = moe_of(c)->experts, K = moe_k(c);
    const bool normalised = moe_norms(c);
    const double scale = by_best(c) ? (double)moe_of(c)->scale : 1;
    const double coef = by_best(c) ? (double)moe_of(c)->aux_coef : 0;
    const ptrdiff_t D = c->D;

    for (int e = 0; e < E; e++) {
        double share = moe_share(c, w, rows, e);
        if (g->mean && coef != 0)
            g->mean(g->mean_arg, &share, 1);
        const double d = coef * E * share / rows;
        for (int t = 0; t < rows; t++)
            d_p[(ptrdiff_t)t * E + e] = (float)d;
    }
    for (int t = 0; t < rows; t++) {
        const ptrdiff_t at = (ptrdiff_t)t * K;
        double sum = 0, mean = 0;
        for (int k = 0; k < K; k++) {
            const ptrdiff_t place = w->place[at + k];
            double d = 0;
            for (int e = 0; place >= 0 && e < D; e++)
                d += (double)d_y[t * D + e] * (double)w->out[place * D + e];
            d_gate[at + k] = (float)d; /* rounded, as below: one gate, divided by itself, cancels */
            sum += (double)w->p[(ptrdiff_t)t * E + w->choice[at + k]];
            mean += (double)d_gate[at + k] * (double)w->gate[at + k];
        }
        for (int k = 0; k < K; k++) {
            const double d = (double)d_gate[at + k];
            d_p[(ptrdiff_t)t * E + w->choice[at + k]] +=
                (float)(normalised ? (scale * d - mean) / sum : scale * d);
        }
    }
}

static size_t moe_work(const struct config *c, int rows, bool keep)
{
    return moe_work_floats(c, rows);
}

static size_t moe_work_grad(const struct config *c, int rows)
{
    const size_t units = moe_gated(c) ? 3 : 1, n = (size_t)rows;
    const size_t places = moe_most_places(c, rows), D = (size_t)c->D;
    const size_t Fs = (size_t)moe_of(c)->shared;

    return n * (size_t)(moe_of(c)->experts + moe_k(c)) + places * (D + units * (size_t)c->F) +
           (Fs ? n * (2 * D + 1 + units * Fs) : 0);
}

/* d_x += the gradient of its rows. */
static void serve_all_grad(const struct engine *g, const struct config *c,
                           const struct moe_weights *of, const struct moe_work *w, float *d_x,
                           const float *d_y, const float *x, int rows, float *at)
{
    const struct moe_expert one = shared_of(c, of, w, x, rows);
    const ptrdiff_t D = c->D, n = (ptrdiff_t)rows * D;
    float *const d_out = at, *const d_in = d_out + n, *const d_gate = d_in + n;
    float *const d_hidden = d_gate + rows, *const d_pre = d_hidden + (ptrdiff_t)rows * one.F;

#pragma omp parallel for num_threads(team(g, c, rows))
    for (int t = 0; t < rows; t++) {
        const float by = of->shared_gate ? w->shared_gate[t] : 1;
        double d = 0;
        for (int e = 0; e < D; e++) {
            d += (double)d_y[t * D + e] * (double)one.out[t * D + e];
            d_out[t * D + e] = by * d_y[t * D + e];
        }
        d_gate[t] = (float)(d * (double)by * (1 - (double)by));
    }
    linear_input_grad(g, &one.w2, d_hidden, d_out, rows, 0);
    moe_expert_grad(g, c, &one, d_in, d_out, d_hidden, d_pre);
    for (ptrdiff_t i = 0; i < n; i++)
        d_x[i] += d_in[i];
    if (!of->shared_gate)
        return;
    linear_backward(g, of->shared_gate, NULL, d_x, d_gate, x, rows, 1);
}

/* d_x from the gradient of the router's probabilities, which is overwritten. */
static void route_grad(const struct engine *g, const struct config *c, const struct moe_weights *of,
                       const struct moe_work *w, float *d_x, float *d_p, const float *x, int rows)
{
    const int groups = moe_groups(c), n = moe_of(c)->experts / groups;

    rows_softmax_grad(g, d_p, w->p, rows * groups, n);
    linear_backward(g, of->router, of->router_bias, d_x, d_p, x, rows, 0);
}

static void moe_backward(const struct engine *g, const struct config *c, const struct param *param,
                         float *d_x, const float *d_y, const float *x, int rows, const float *work,
                         float *grad_work, const struct dropout *drop)
{
    const struct moe_work w = moe_work_of(c, rows, work);
    const struct moe_weights of = moe_weights_of(c, param);
    const int E = moe_of(c)->experts;
    const ptrdiff_t D = c->D, F = c->F, places = w.first[E];
    float *d_p = grad_work, *d_gate = d_p + (ptrdiff_t)rows * E;
    float *d_hidden = d_gate + (ptrdiff_t)rows * moe_k(c), *d_out = d_hidden + places * F;
    float *const d_pre = d_out + places * D;
    float *const rest = d_pre + (moe_gated(c) ? 2 * places * F : 0);

    if (!moe_by_token(c))
        router_grad(g, c, &w, d_p, d_gate, d_y, rows);
    move_rows(g, c, &w, d_out, d_y, rows, false, true);
    for (int e = 0; e < E; e++) {
        const struct moe_expert one = expert_of(c, &of, &w, e);
        if (one.n)
            linear_input_grad(g, &one.w2, d_hidden + w.first[e] * F, d_out + w.first[e] * D, one.n,
                              0);
    }
    dropout(drop, DROP_HIDDEN, d_hidden, (size_t)(places * F), g->threads);
    for (int e = 0; e < E; e++) {
        const struct moe_expert one = expert_of(c, &of, &w, e);
        float *const d = d_out + w.first[e] * D;
        if (one.n)
            moe_expert_grad(g, c, &one, d, d, d_hidden + w.first[e] * F,
                            d_pre + 2 * w.first[e] * F);
    }
    if (moe_by_token(c))
        memset(d_x, 0, sizeof(float) * (size_t)(rows * D));
    else
        route_grad(g, c, &of, &w, d_x, d_p, x, rows);
    move_rows(g, c, &w, d_x, d_out, rows, true, false);
    if (moe_of(c)->shared)
        serve_all_grad(g, c, &of, &w, d_x, d_y, x, rows, rest);
}

static struct ffn_choice moe_chose(const struct config *c, int rows, const float *work)
{
    return (struct ffn_choice){"out.route", moe_work_of(c, rows, work).route,
                               (size_t)rows * (size_t)moe_k(c)};
}

#define EXPERTS                                                                                    \
    .numbers = &moe_numbers, .by_expert = true, .params = moe_params, .flop = moe_flop,            \
    .work = moe_work, .work_grad = moe_work_grad, .forward = moe_forward, .backward = moe_backward

const struct ffn ffn_moe = {
    .name = "moe",
    EXPERTS,
    .mixes = true, /* by the capacity of the experts */
    .aux = moe_aux,
    .chose = moe_chose,
};
const struct ffn ffn_proto = {.name = "proto", EXPERTS, .chose = moe_chose};
const struct ffn ffn_hash = {.name = "hash", EXPERTS, .read_tokens = hash_tokens};
