/* SPDX-License-Identifier: MIT
 *
 * Scores predicted from those of the layer below (Wang et al. 2021, arXiv:2102.12895). s are the
 * scores that a layer has by itself, S what it uses and hands on, ~ "0 where not visible":
 *
 *   conv(X)_g[i,j] = b_g + sum_h sum_rc W[g,h,r,c] X_h[i - up + r, j - floor(cols / 2) + c]
 *   convex      S = (1 - a) s + a conv(S~ below)
 *   evolving    t = (1 - b) s + b S below
 *               S = a max(0, conv(t~)) + (1 - a) t
 *   first layer S = s
 *
 * Causal convolutions end at the own row (up = rows - 1), others are centred.
 *
 * Convex scores are one call of the core: softmax((1 - a) (s + a/(1 - a) conv)). Evolving ones need
 * s before the convolution: one call of the core for s, one that has S as its scores. */
#include "term_predict.h"
#include "around.h"
#include "variants/model/sublayer/sublayer_seen.h"

enum { WEIGHT, BIAS };
/* [B,H,L,all] scores that a convolution reads; [B,H,L] of a call for scores alone; of backward:
 * [B,L,H,dh], and values of that call. */
enum { MIXTURE, LSE, ZEROS, D_V };

enum predict_form { PREDICT_NONE, PREDICT_CONVEX, PREDICT_EVOLVING };
struct predict {
    enum predict_form form;
    float alpha, beta; /* of the convolution, and of the scores below in what it reads */
    int rows, cols;    /* of the convolution */
};

static const struct predict *predict_of(const struct config *c)
{
    return config_numbers(c, SLOT_term_predict);
}

static bool evolves(const struct config *c) { return predict_of(c)->form == PREDICT_EVOLVING; }
static bool on(const struct config *c) { return predict_of(c)->form != PREDICT_NONE; }

static const char *const form_name[] = {"none", "convex", "evolving", NULL};

/* Golden files leave the form to the variant. */
static const struct choice choices[] = {
    ROW_WORD(struct predict, form, "pred_form", form_name, "what the convolution reads",
             .scope = SCOPE_MODEL, .least = 1, .applies = on, SETTING),
    ROW_REAL(struct predict, alpha, "pred_alpha", 0, 1, "weight of the convolution", .absent = "0",
             .scope = SCOPE_MODEL, .applies = on, SETTING),
    ROW_REAL(struct predict, beta, "pred_beta", 0, 1, "weight of the scores below in what it reads",
             .absent = "0", .scope = SCOPE_MODEL, .applies = evolves, SETTING),
    ROW_INT(struct predict, rows, "pred_rows", 0, 1 << 10,
            "queries that a convolution over scores reads", .scope = SCOPE_MODEL, .setting = true,
            .applies = on, .absent = "0"),
    ROW_INT(struct predict, cols, "pred_cols", 0, 1 << 10, "keys that it reads",
            .scope = SCOPE_MODEL, .setting = true, .applies = on, .absent = "0"),
    {0},
};

static enum status check(const struct config *c, const void *numbers, struct err *e)
{
    const struct predict *const p = numbers;

    if (p->rows >= 1 && p->cols >= 1 && (p->form != PREDICT_CONVEX || p->alpha < 1))
        return OK;
    return fail(e, E_USAGE,
                "%s: pred_rows %d, pred_cols %d, pred_alpha %g  -> use 1 or more, below 1",
                c->variant->name, p->rows, p->cols, (double)p->alpha);
}

static const struct part_numbers numbers = {
    choices, PRESET(struct predict, PREDICT_CONVEX, 0.5f, 0.5f, 3, 3), check};

/* Has this attention scores below; are its own computed first? */
static bool predicts(const struct sublayer *s) { return s->bare || s->nth > 0; }
static bool predicts_twice(const struct sublayer *s)
{
    return predicts(s) && predict_of(s->c)->form == PREDICT_EVOLVING;
}

static float gain(const struct sublayer *s)
{
    return predicts(s) && !predicts_twice(s) ? 1 - predict_of(s->c)->alpha : 0;
}

static void declare(const struct sublayer *s, const char *prefix, struct params *p)
{
    const struct config *const c = s->c;
    const struct predict *const t = predict_of(c);

    if (!predicts(s))
        return;
    params_add(p, INIT_CENTRE, (float)(c->causal ? t->rows - 1 : t->rows / 2), 4,
               (const int[]){c->H, c->H, t->rows, t->cols}, "%sattn.pred.weight", prefix);
    params_vector(p, INIT_ZERO, 0, c->H, prefix, "attn.pred.bias");
}

static void arrays(const struct sublayer *s, struct around_call n, size_t floats[AROUND_ARRAYS])
{
    const size_t B = (size_t)n.B, L = (size_t)n.L, H = (size_t)s->c->H;

    floats[MIXTURE] = predicts(s) ? B * (size_t)n.all * L * H : 0;
    if (!predicts_twice(s))
        return;
    if (n.backward) {
        floats[ZEROS] = B * L * (size_t)config_q_width(s->c);
        floats[D_V] = B * (size_t)n.K * (size_t)config_kv_width(s->c);
    } else {
        floats[LSE] = B * L * H;
    }
}

static struct field field_of(const struct part_call *t, const struct attn *a)
{
    const struct predict *const p = predict_of(t->s->c);

    return (struct field){.B = a->B,
                          .H = a->H,
                          .L = a->L,
                          .K = attn_keys(a),
                          .rows = p->rows,
                          .cols = p->cols,
                          .up = t->s->c->causal ? p->rows - 1 : p->rows / 2,
                          .W = t->param[WEIGHT].data,
                          .b = t->param[BIAS].data,
                          .threads = t->g->threads};
}

/* ---- what is visible ---------------------------------------------------------------------- */

/* to = from where visible, else 0; it may be from. */
static void only_visible(const struct engine *g, const struct attn *a, float *to, const float *from)
{
    const int K = attn_keys(a);

#pragma omp parallel for num_threads(g->threads)
    for (int row = 0; row < a->B * a->H * a->L; row++) {
        const struct sight sight = attn_sight(a, row / a->L % a->H);
        const float *const x = from + (ptrdiff_t)row * K;
        float *const y = to + (ptrdiff_t)row * K;
        struct range r = {0, 0};
        int done = 0;
        for (; sight_next(&sight, row % a->L, 1, &r); done = r.to) {
            memset(y + done, 0, sizeof(float) * (size_t)(r.from - done));
            memmove(y + r.from, x + r.from, sizeof(float) * (size_t)(r.to - r.from));
        }
        memset(y + done, 0, sizeof(float) * (size_t)(K - done));
    }
}

static size_t pairs_of(const struct attn *a)
{
    return (size_t)a->B * (size_t)a->H * (size_t)a->L * (size_t)attn_keys(a);
}

/* ---- forward ------------------------------------------------------------------------------ */

static void set_scores(const struct part_call *t, struct attn *a)
{
    const struct sublayer *const s = t->s;
    float *const S = t->w->array[AT_SCORES];

    if (t->w->above)
        a->scores_out = S;
    a->gain = a->gain != 0 ? a->gain : gain(s);
    if (predicts(s))
        a->add = around_dense(s->c, t->n, predicts_twice(s) ? S : t->add);
}

static void add(const struct part_call *t, const struct attn *a, struct seq_rows rows)
{
    const float alpha = predict_of(t->s->c)->alpha;

    if (predicts_twice(t->s))
        return;
    if (predicts(t->s)) {
        const struct field f = field_of(t, a);
        only_visible(t->g, a, t->at[MIXTURE], t->w->below->array[AT_SCORES]);
        convolve(&f, t->add, t->at[MIXTURE]);
#pragma omp parallel for simd num_threads(t->g->threads)
        for (size_t i = 0; i < pairs_of(a); i++)
            t->add[i] *= alpha / (1 - alpha);
    }
    if (a->scores_out)
        memset(a->scores_out, 0, pairs_of(a) * sizeof(float));
}

/* S of evolving scores, after the call of the core for s. */
static void evolve(const struct part_call *t, const struct attn *a)
{
    const struct predict *const p = predict_of(t->s->c);
    const struct field f = field_of(t, a);
    const float *const below = t->w->below->array[AT_SCORES];
    float *const S = t->w->array[AT_SCORES], *const mixture = t->at[MIXTURE];

#pragma omp parallel for simd num_threads(t->g->threads)
    for (size_t i = 0; i < pairs_of(a); i++)
        mixture[i] = (1 - p->beta) * mixture[i] + p->beta * below[i];
    only_visible(t->g, a, mixture, mixture);
    convolve(&f, t->add, mixture);
#pragma omp parallel for simd num_threads(t->g->threads)
    for (size_t i = 0; i < pairs_of(a); i++)
        S[i] = (1 - p->alpha) * mixture[i] + (t->add[i] > 0 ? p->alpha * t->add[i] : 0);
    only_visible(t->g, a, S, S);
}

/* The core that computes s alone, and the one that has S as its scores. */
static struct attn core_of_scores(const struct part_call *t, const struct attn *a)
{
    struct attn one = *a;

    one.add.at = NULL;
    one.gain = 0;
    one.lse = t->at[LSE];
    one.scores_out = t->at[MIXTURE];
    one.rel_v = NULL;
    return one;
}

static struct attn core_of_sums(const struct attn *a)
{
    struct attn one = *a;

    one.no_content = true;
    one.u = one.w = one.rel_k = one.rel_q = one.bias = NULL;
    one.soft_cap = 0;
    return one;
}

/* It leaves S for the next attention. */
static void run(const struct part_call *t, const struct attn *a)
{
    const struct attn_impl *const impl = t->s->state.attention.impl;
    const float by = gain(t->s);

    if (predicts_twice(t->s)) {
        const struct attn scores = core_of_scores(t, a), sums = core_of_sums(a);
        memset(t->at[MIXTURE], 0, pairs_of(a) * sizeof(float));
        impl->forward(t->g, &scores, t->w->scratch);
        evolve(t, a);
        sublayer_seen(t->g, t->s, 0, 0, &sums);
        impl->forward(t->g, &sums, t->w->scratch);
        return;
    }
    sublayer_seen(t->g, t->s, 0, 0, a);
    impl->forward(t->g, a, t->w->scratch);
    if (by == 0 || !a->scores_out)
        return;
#pragma omp parallel for simd num_threads(t->g->threads)
    for (size_t i = 0; i < pairs_of(a); i++)
        a->scores_out[i] *= by;
}

/* ---- backward ----------------------------------------------------------------------------- */

static void scores_grad(const struct part_call *t, const struct attn *a, struct attn_grad *d)
{
    float *const G = t->w->d_array[AT_SCORES];
    const float by = gain(t->s);

    if (!t->w->above)
        memset(G, 0, pairs_of(a) * sizeof(float));
    if (predicts_twice(t->s)) {
        d->d_add = G; /* which gathers on */
        return;
    }
    if (predicts(t->s))
        d->d_add = around_add_zeros(t);
    d->d_scores_out = t->w->above ? G : NULL;
    if (by == 0)
        return;
#pragma omp parallel for simd num_threads(t->g->threads)
    for (size_t i = 0; i < pairs_of(a); i++)
        G[i] *= by;
}

/* dt, and then d S below and ds, which the core takes to its operands. */
static void evolve_grad(const struct part_call *t, const struct attn *a, const struct attn_grad *d)
{
    const struct predict *const p = predict_of(t->s->c);
    const struct field f = field_of(t, a);
    const struct attn scores = core_of_scores(t, a);
    struct attn_grad d_scores = *d;
    float *const G = t->w->d_array[AT_SCORES], *const ds = t->d_add;
    float *const d_mixture = t->d_at[MIXTURE], *const zeros = t->d_at[ZEROS];

    only_visible(t->g, a, G, G);
#pragma omp parallel for simd num_threads(t->g->threads)
    for (size_t i = 0; i < pairs_of(a); i++) {
        d_mixture[i] = t->add[i] > 0 ? p->alpha * G[i] : 0;
        ds[i] = (1 - p->alpha) * G[i];
    }
    convolve_weights(&f, t->param, d_mixture, t->at[MIXTURE]);
    convolve_back(&f, ds, d_mixture);
    only_visible(t->g, a, ds, ds);
#pragma omp parallel for simd num_threads(t->g->threads)
    for (size_t i = 0; i < pairs_of(a); i++) {
        G[i] = p->beta * ds[i];
        ds[i] *= 1 - p->beta;
    }
    memset(zeros, 0, sizeof(float) * (size_t)(t->n.B * t->n.L) * (size_t)config_q_width(t->s->c));
    d_scores.d_o = zeros;
    d_scores.d_scores_out = ds;
    d_scores.d_add = NULL;
    d_scores.d_v = t->d_at[D_V]; /* nothing, since d_o is 0 */
    d_scores.d_rel_v = NULL;
    t->s->state.attention.impl->backward(t->g, &scores, &d_scores, t->w->d_scratch);
}

/* It leaves the gradient of S below. */
static void run_grad(const struct part_call *t, const struct attn *a, const struct attn_grad *d)
{
    const struct attn_impl *const impl = t->s->state.attention.impl;

    if (predicts_twice(t->s)) {
        const struct attn sums = core_of_sums(a);
        const struct attn_grad d_sums = {
            .d_o = d->d_o, .d_v = d->d_v, .d_rel_v = d->d_rel_v, .d_add = d->d_add};
        impl->backward(t->g, &sums, &d_sums, t->w->d_scratch);
        evolve_grad(t, a, d);
        return;
    }
    impl->backward(t->g, a, d, t->w->d_scratch);
    if (!predicts(t->s))
        return;
    const struct field f = field_of(t, a);
    const float alpha = predict_of(t->s->c)->alpha;
    float *const G = t->w->d_array[AT_SCORES];
#pragma omp parallel for simd num_threads(t->g->threads)
    for (size_t i = 0; i < pairs_of(a); i++)
        d->d_add[i] *= alpha / (1 - alpha);
    convolve_weights(&f, t->param, d->d_add, t->at[MIXTURE]);
    memset(G, 0, pairs_of(a) * sizeof(float));
    convolve_back(&f, G, d->d_add);
    only_visible(t->g, a, G, G);
}

static double flop(const struct part_cost *t)
{
    const struct predict *const p = predict_of(t->s->c);

    return predicts(t->s) ? 2.0 * t->a->B * t->a->H * p->rows * p->cols * around_pairs(t->a) : 0;
}

static const struct score_core core = {
    .gain = gain,
    .scores = set_scores,
    .run = run,
    .scores_grad = scores_grad,
    .run_grad = run_grad,
};

const struct around_part term_predict = {
    .said = "predicted scores",
    .numbers = &numbers,
    /* scores that are handed on are all that there is in the next layer's */
    .excludes = EXCLUDES(HAS_EXTRA, HAS_STACK, HAS_ORDER, HAS_STEPS, HAS_SUBS, HAS_STREAM),
    .params = declare,
    .arrays = arrays,
    .flop = flop,
    .term = {.added = ADDS_TO_PAIRS, .core = &core, .add = add},
};
