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

#include <float.h>
#include <math.h>
#include <string.h>

/* The router, if there is one; then w1, b1, w2, b2, all experts in one tensor each; then the table
 * of tokens, if these choose. */
enum { ROUTER };

bool moe_in_groups(const struct config *c) { return c->ffn == &ffn_proto; }
bool moe_by_token(const struct config *c) { return c->ffn == &ffn_hash; }
int moe_groups(const struct config *c) { return moe_in_groups(c) ? moe_of(c)->groups : 1; }

int moe_k(const struct config *c)
{
    return moe_by_token(c) ? 1 : moe_in_groups(c) ? moe_of(c)->groups : moe_of(c)->k;
}

static int w1_of(const struct config *c) { return moe_by_token(c) ? ROUTER : ROUTER + 1; }
static bool by_best(const struct config *c) { return c->ffn == &ffn_moe; }

static const char *const act_name[] = {"relu", "gelu", "gelu_tanh", "swish", NULL};

enum act_kind moe_act(const struct config *c)
{
    static const enum act_kind kind[] = {ACT_RELU, ACT_GELU, ACT_GELU_TANH, ACT_SWISH};

    return kind[moe_of(c)->act];
}

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
    {0},
};

static void moe_usual(const struct config *c, void *numbers)
{
    (void)c;
    *(struct moe *)numbers = (struct moe){.experts = 4, .k = 1, .aux_coef = 0.01f, .groups = 2};
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
    return OK;
}

static const struct part_numbers moe_numbers = {moe_choices, NUMBERS_SIZE(struct moe), moe_usual,
                                                moe_check};

static void moe_params(const struct config *c, const char *prefix, struct params *p)
{
    const int E = moe_of(c)->experts;

    if (!moe_by_token(c))
        params_chooses(p, params_matrix(p, E, c->D, prefix, "router.weight"));
    params_narrows(
        p, params_add(p, INIT_LINEAR, 0, 3, (const int[]){E, c->F, c->D}, "%se.1.weight", prefix));
    if (c->ffn_bias)
        params_add(p, INIT_ZERO, 0, 2, (const int[]){E, c->F}, "%se.1.bias", prefix);
    params_residual(p,
                    params_narrows(p, params_add(p, INIT_LINEAR, 0, 3, (const int[]){E, c->D, c->F},
                                                 "%se.2.weight", prefix)));
    if (c->ffn_bias)
        params_add(p, INIT_ZERO, 0, 2, (const int[]){E, c->D}, "%se.2.bias", prefix);
    if (moe_by_token(c) && c->V) {
        const int table = params_add(p, INIT_TURNS, (float)E, 1, &c->V, "%stable", prefix);
        params_bound(p, table, 0, (float)(E - 1));
        params_buffer(p, table);
    }
}

/* One expert's matrix of [experts,out,in], or its vector of [experts,n]. */
static struct param share(const struct param *all, int e)
{
    const int rows = all->rank == 3 ? all->shape[1] : 1;
    struct param one = param_rows(all, (ptrdiff_t)e * rows, rows);

    if (all->rank == 2) {
        one.rank = 1;
        one.shape[0] = all->shape[1];
    }
    return one;
}

/* One expert: its maps, biases if the model has them, and its n places from `at` on. */
struct expert {
    struct param w1, b1, w2, b2;
    ptrdiff_t at;
    int n;
};

static struct expert expert_of(const struct config *c, const struct param *w,
                               const struct moe_work *work, int e)
{
    const int bias = c->ffn_bias, w1 = w1_of(c), w2 = w1 + 1 + bias;
    struct expert x = {.w1 = share(&w[w1], e), .w2 = share(&w[w2], e), .at = work->first[e]};

    x.n = (int)(work->first[e + 1] - x.at);

    if (bias) {
        x.b1 = share(&w[w1 + 1], e);
        x.b2 = share(&w[w2 + 1], e);
    }
    return x;
}

static double moe_flop(const struct config *c, int rows)
{
    const double router = moe_by_token(c) ? 0 : 2.0 * rows * c->D * moe_of(c)->experts;

    return router + 4.0 * (double)moe_most_places(c, rows) * c->D * c->F;
}

static void route(const struct engine *g, const struct config *c, const struct param *router,
                  const float *x, int rows, const struct moe_work *w)
{
    const int groups = moe_groups(c), n = moe_of(c)->experts / groups;

    if (!moe_by_token(c)) {
        linear_forward(g, router, NULL, w->p, x, rows, (struct act){.y = w->p});
        g->ops.softmax(&(struct softmax){
            .s = w->p, .ld = n, .rows = rows * groups, .cols = n, .hi = n, .threads = g->threads});
    }
    moe_assign(c, w, rows);
}

static void hash_tokens(const struct config *c, const struct param *w, const int32_t *tokens,
                        int rows, float *work)
{
    const struct moe_work to = moe_work_of(c, rows, work);
    const struct param *const table = &w[w1_of(c) + 2 + 2 * c->ffn_bias];

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

/* Copy the rows of all served choices, multiplied by their gates if given. */
static void gather(const struct engine *g, const struct config *c, const struct moe_work *w,
                   float *to, const float *x, int rows, bool gated)
{
    const int D = c->D;

#pragma omp parallel for num_threads(team(g, c, rows))
    for (int t = 0; t < rows; t++)
        for (int k = 0; k < moe_k(c); k++) {
            const ptrdiff_t at = (ptrdiff_t)t * moe_k(c) + k, place = w->place[at];
            const float by = gated ? w->gate[at] : 1;
            for (int e = 0; place >= 0 && e < D; e++)
                to[place * D + e] = by * x[(ptrdiff_t)t * D + e];
        }
}

/* y += the rows of `from` per served choice, multiplied by their gates if given. */
static void scatter(const struct engine *g, const struct config *c, const struct moe_work *w,
                    float *y, const float *from, int rows, bool gated)
{
    const int D = c->D;

#pragma omp parallel for num_threads(team(g, c, rows))
    for (int t = 0; t < rows; t++)
        for (int k = 0; k < moe_k(c); k++) {
            const ptrdiff_t at = (ptrdiff_t)t * moe_k(c) + k, place = w->place[at];
            const float by = gated ? w->gate[at] : 1;
            for (int e = 0; place >= 0 && e < D; e++)
                y[(ptrdiff_t)t * D + e] += by * from[place * D + e];
        }
}

static const struct param *bias_of(const struct config *c, const struct param *bias)
{
    return c->ffn_bias ? bias : NULL;
}

/* Backward of ReLU reads its output, of others what they were given. */
static void hidden_units(const struct engine *g, const struct config *c, const struct expert *x,
                         float *hidden, float *pre, const float *in)
{
    const struct param *const bias = bias_of(c, &x->b1);

    if (!pre) {
        linear_forward(g, &x->w1, bias, hidden, in, x->n,
                       (struct act){.kind = moe_act(c), .y = hidden});
        return;
    }
    const struct gemm product = linear_product(g, &x->w1, pre, in, x->n);
    g->ops.gemm(&product);
    g->ops.act(&(struct act){.kind = moe_act(c),
                             .y = hidden,
                             .x = pre,
                             .bias = bias ? bias->data : NULL,
                             .rows = x->n,
                             .n = c->F,
                             .threads = g->threads});
}

static void moe_forward(const struct engine *g, const struct config *c, const struct param *param,
                        float *y, const float *x, int rows, float *work, bool keep,
                        struct act epilogue, const struct dropout *drop)
{
    const struct moe_work w = moe_work_of(c, rows, work);
    const ptrdiff_t D = c->D, F = c->F;

    (void)keep;
    route(g, c, &param[ROUTER], x, rows, &w);
    gather(g, c, &w, w.in, x, rows, false);
    for (int e = 0; e < moe_of(c)->experts; e++) {
        const struct expert x_e = expert_of(c, param, &w, e);
        float *hidden = w.hidden + x_e.at * F;
        if (x_e.n)
            hidden_units(g, c, &x_e, hidden, w.pre ? w.pre + x_e.at * F : NULL, w.in + x_e.at * D);
    }
    dropout(drop, DROP_HIDDEN, w.hidden, (size_t)(w.first[moe_of(c)->experts] * F), g->threads);
    for (int e = 0; e < moe_of(c)->experts; e++) {
        const struct expert x_e = expert_of(c, param, &w, e);
        float *out = w.out + x_e.at * D;
        if (x_e.n)
            linear_forward(g, &x_e.w2, bias_of(c, &x_e.b2), out, w.hidden + x_e.at * F, x_e.n,
                           (struct act){.y = out});
    }
    memset(y, 0, sizeof(float) * (size_t)(rows * D));
    scatter(g, c, &w, y, w.out, rows, true);
    epilogue.x = y;
    epilogue.rows = rows;
    epilogue.n = c->D;
    epilogue.threads = g->threads;
    g->ops.act(&epilogue);
}

/* ---- backward ----------------------------------------------------------------------------- */

/* d_p [rows,E] of the router's probabilities, from those of the gates, d_gate_k = dy . FFN_k(x),
 * and of the auxiliary loss. A choice that was not served has no part in y, but if gates are
 * normalised its p is part of their sum. */
static void router_grad(const struct engine *g, const struct config *c, const struct moe_work *w,
                        float *d_p, float *d_gate, const float *d_y, int rows)
{
    const int E = moe_of(c)->experts, K = moe_k(c);
    const bool normalised = by_best(c) && K > 1;
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
            d_gate[at + k] = (float)d;
            sum += (double)w->p[(ptrdiff_t)t * E + w->choice[at + k]];
            mean += d * (double)w->gate[at + k];
        }
        for (int k = 0; k < K; k++) {
            const double d = (double)d_gate[at + k];
            d_p[(ptrdiff_t)t * E + w->choice[at + k]] += (float)(normalised ? (d - mean) / sum : d);
        }
    }
}

/* For an expert's rows: d_hidden from d_out, then d_out becomes the gradient of the input. */
static void expert_backward(const struct engine *g, const struct config *c, const struct expert *x,
                            const struct moe_work *w, float *d_hidden, float *d_out)
{
    const float *in = w->in + x->at * c->D, *hidden = w->hidden + x->at * c->F;
    const float *const pre = w->pre ? w->pre + x->at * c->F : NULL;
    const int n = x->n;

    if (c->ffn_bias)
        linear_bias_grad(g, &x->b2, d_out, n);
    linear_weight_grad(g, &x->w2, d_out, hidden, n);
    g->ops.act_grad(&(struct act_grad){.kind = moe_act(c),
                                       .d_x = d_hidden,
                                       .d_bias = c->ffn_bias ? x->b1.grad : NULL,
                                       .d_y = d_hidden,
                                       .x = pre ? pre : hidden,
                                       .bias = pre && c->ffn_bias ? x->b1.data : NULL,
                                       .rows = n,
                                       .n = c->F,
                                       .threads = g->threads});
    linear_weight_grad(g, &x->w1, d_hidden, in, n);
    linear_input_grad(g, &x->w1, d_out, d_hidden, n, 0);
}

static size_t moe_work(const struct config *c, int rows, bool keep)
{
    (void)keep;
    return moe_work_floats(c, rows);
}

static size_t moe_work_grad(const struct config *c, int rows)
{
    return (size_t)rows * (size_t)(moe_of(c)->experts + moe_k(c)) +
           moe_most_places(c, rows) * (size_t)(c->D + c->F);
}

static void moe_backward(const struct engine *g, const struct config *c, const struct param *param,
                         float *d_x, const float *d_y, const float *x, int rows, const float *work,
                         float *grad_work, const struct dropout *drop)
{
    const struct moe_work w = moe_work_of(c, rows, work);
    const int E = moe_of(c)->experts;
    const ptrdiff_t D = c->D, F = c->F, places = w.first[E];
    float *d_p = grad_work, *d_gate = d_p + (ptrdiff_t)rows * E;
    float *d_hidden = d_gate + (ptrdiff_t)rows * moe_k(c), *d_out = d_hidden + places * F;

    if (!moe_by_token(c))
        router_grad(g, c, &w, d_p, d_gate, d_y, rows);
    gather(g, c, &w, d_out, d_y, rows, true);
    for (int e = 0; e < E; e++) {
        const struct expert x_e = expert_of(c, param, &w, e);
        if (x_e.n)
            linear_input_grad(g, &x_e.w2, d_hidden + x_e.at * F, d_out + x_e.at * D, x_e.n, 0);
    }
    dropout(drop, DROP_HIDDEN, d_hidden, (size_t)(places * F), g->threads);
    for (int e = 0; e < E; e++) {
        const struct expert x_e = expert_of(c, param, &w, e);
        if (x_e.n)
            expert_backward(g, c, &x_e, &w, d_hidden + x_e.at * F, d_out + x_e.at * D);
    }
    if (moe_by_token(c)) {
        memset(d_x, 0, sizeof(float) * (size_t)(rows * D));
    } else {
        const int groups = moe_groups(c);
        g->ops.softmax_grad(&(struct softmax_grad){.d = d_p,
                                                   .p = w.p,
                                                   .ld = E / groups,
                                                   .rows = rows * groups,
                                                   .cols = E / groups,
                                                   .threads = g->threads});
        linear_weight_grad(g, &param[ROUTER], d_p, x, rows);
        linear_input_grad(g, &param[ROUTER], d_x, d_p, rows, 0);
    }
    scatter(g, c, &w, d_x, d_out, rows, false);
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
