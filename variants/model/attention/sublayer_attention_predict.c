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
 * s before the convolution: one call of the core for s, one that has S as its scores. Convolutions
 * are plain loops over rows, in all threads. */
#include "sublayer_attention_around.h"
#include "variants/model/sublayer/sublayer_inner.h"

#include <string.h>

bool predicts(const struct sublayer *s)
{
    return s->c->around.predict.form && (s->bare || s->nth > 0);
}

bool predicts_twice(const struct sublayer *s)
{
    return predicts(s) && s->c->around.predict.form == PREDICT_EVOLVING;
}

float predict_gain(const struct sublayer *s)
{
    return predicts(s) && !predicts_twice(s) ? 1 - s->c->around.predict.alpha : 0;
}

/* ---- convolutions ------------------------------------------------------------------------- */

/* Arrays [B,H,L,K] of one call, and the convolution between them. */
struct field {
    int B, H, L, K;
    int rows, cols, up;
    const float *W, *b; /* [H,H,rows,cols] [H] */
    int threads;
};

static struct field field_of(const struct engine *g, const struct sublayer *s, const struct attn *a)
{
    const struct predict *const p = &s->c->around.predict;

    return (struct field){.B = a->B,
                          .H = a->H,
                          .L = a->L,
                          .K = attn_keys(a),
                          .rows = p->rows,
                          .cols = p->cols,
                          .up = s->c->causal ? p->rows - 1 : p->rows / 2,
                          .W = around_param(s, AROUND_PREDICT_W)->data,
                          .b = around_param(s, AROUND_PREDICT_B)->data,
                          .threads = g->threads};
}

static ptrdiff_t row_at(const struct field *f, int b, int h, int i)
{
    return (((ptrdiff_t)b * f->H + h) * f->L + i) * f->K;
}

static ptrdiff_t tap_at(const struct field *f, int to, int from, int r, int c)
{
    return (((ptrdiff_t)to * f->H + from) * f->rows + r) * f->cols + c;
}

/* y[j] += w x[j + shift] where both exist. */
static void add_shifted(float *restrict y, const float *restrict x, float w, int shift, int K)
{
    const int from = max_int(0, -shift), to = min_int(K, K - shift);

    for (int j = from; j < to; j++)
        y[j] += w * x[j + shift];
}

static double dot_shifted(const float *y, const float *x, int shift, int K)
{
    const int from = max_int(0, -shift), to = min_int(K, K - shift);
    double sum = 0;

    for (int j = from; j < to; j++)
        sum += (double)y[j] * (double)x[j + shift];
    return sum;
}

/* y = conv(x) */
static void convolve(const struct field *f, float *y, const float *x)
{
#pragma omp parallel for num_threads(f->threads)
    for (int row = 0; row < f->B * f->H * f->L; row++) {
        const int i = row % f->L, g = row / f->L % f->H, b = row / f->L / f->H;
        float *const to = y + row_at(f, b, g, i);
        for (int j = 0; j < f->K; j++)
            to[j] = f->b[g];
        for (int h = 0; h < f->H; h++)
            for (int r = max_int(0, f->up - i); r < f->rows && i - f->up + r < f->L; r++)
                for (int c = 0; c < f->cols; c++)
                    add_shifted(to, x + row_at(f, b, h, i - f->up + r), f->W[tap_at(f, g, h, r, c)],
                                c - f->cols / 2, f->K);
    }
}

/* d_x += conv^T(d_y) */
static void convolve_back(const struct field *f, float *d_x, const float *d_y)
{
#pragma omp parallel for num_threads(f->threads)
    for (int row = 0; row < f->B * f->H * f->L; row++) {
        const int i = row % f->L, h = row / f->L % f->H, b = row / f->L / f->H;
        float *const to = d_x + row_at(f, b, h, i);
        for (int g = 0; g < f->H; g++)
            for (int r = 0; r < f->rows; r++)
                for (int c = 0; c < f->cols && i + f->up - r >= 0 && i + f->up - r < f->L; c++)
                    add_shifted(to, d_y + row_at(f, b, g, i + f->up - r),
                                f->W[tap_at(f, g, h, r, c)], f->cols / 2 - c, f->K);
    }
}

/* Gradients of W and b, given that of conv(x): each number by one thread. */
static void convolve_weights(const struct field *f, const struct sublayer *s, const float *d_y,
                             const float *x)
{
    float *const d_W = around_param(s, AROUND_PREDICT_W)->grad;
    float *const d_b = around_param(s, AROUND_PREDICT_B)->grad;

#pragma omp parallel for num_threads(f->threads)
    for (int t = 0; t < f->H * f->H * f->rows * f->cols; t++) {
        const int c = t % f->cols, r = t / f->cols % f->rows;
        const int h = t / f->cols / f->rows % f->H, g = t / f->cols / f->rows / f->H;
        double sum = 0;
        for (int b = 0; b < f->B; b++)
            for (int i = max_int(0, f->up - r); i < f->L && i - f->up + r < f->L; i++)
                sum += dot_shifted(d_y + row_at(f, b, g, i), x + row_at(f, b, h, i - f->up + r),
                                   c - f->cols / 2, f->K);
        d_W[t] += (float)sum;
    }
    for (int g = 0; g < f->H; g++) {
        double sum = 0;
        for (int b = 0; b < f->B; b++)
            for (ptrdiff_t x_at = 0; x_at < (ptrdiff_t)f->L * f->K; x_at++)
                sum += (double)d_y[row_at(f, b, g, 0) + x_at];
        d_b[g] += (float)sum;
    }
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

void predict_add(const struct engine *g, const struct sublayer *s, const struct work *w,
                 struct around_call n, const struct attn *a)
{
    const struct around_work x = around_work_of(s, w->own[AT_AROUND], n, false);
    const float alpha = s->c->around.predict.alpha;

    if (predicts(s) && !predicts_twice(s)) {
        const struct field f = field_of(g, s, a);
        only_visible(g, a, x.mixture, w->below->own[AT_SCORES]);
        convolve(&f, x.add, x.mixture);
#pragma omp parallel for simd num_threads(g->threads)
        for (size_t i = 0; i < pairs_of(a); i++)
            x.add[i] *= alpha / (1 - alpha);
    }
    if (!predicts_twice(s) && a->scores_out)
        memset(a->scores_out, 0, pairs_of(a) * sizeof(float));
}

/* S of evolving scores, after the call of the core for s. */
static void evolve(const struct engine *g, const struct sublayer *s, const struct work *w,
                   const struct around_work *x, const struct attn *a)
{
    const struct predict *const p = &s->c->around.predict;
    const struct field f = field_of(g, s, a);
    const float *const below = w->below->own[AT_SCORES];
    float *const S = w->own[AT_SCORES];

#pragma omp parallel for simd num_threads(g->threads)
    for (size_t i = 0; i < pairs_of(a); i++)
        x->mixture[i] = (1 - p->beta) * x->mixture[i] + p->beta * below[i];
    only_visible(g, a, x->mixture, x->mixture);
    convolve(&f, x->add, x->mixture);
#pragma omp parallel for simd num_threads(g->threads)
    for (size_t i = 0; i < pairs_of(a); i++)
        S[i] = (1 - p->alpha) * x->mixture[i] + (x->add[i] > 0 ? p->alpha * x->add[i] : 0);
    only_visible(g, a, S, S);
}

/* The core that computes s alone, and the one that has S as its scores. */
static struct attn core_of_scores(const struct around_work *x, const struct attn *a)
{
    struct attn one = *a;

    one.add.at = NULL;
    one.gain = 0;
    one.lse = x->lse;
    one.scores_out = x->mixture;
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

void predict_core(const struct engine *g, const struct sublayer *s, const struct work *w,
                  struct around_call n, const struct attn *a)
{
    const struct around_work x = around_work_of(s, w->own[AT_AROUND], n, false);
    const struct attn_impl *const impl = s->of.attention.impl;
    const float gain = predict_gain(s);

    if (predicts_twice(s)) {
        const struct attn scores = core_of_scores(&x, a), sums = core_of_sums(a);
        memset(x.mixture, 0, pairs_of(a) * sizeof(float));
        impl->forward(g, &scores, w->scratch);
        evolve(g, s, w, &x, a);
        impl->forward(g, &sums, w->scratch);
        return;
    }
    impl->forward(g, a, w->scratch);
    if (gain == 0 || !a->scores_out)
        return;
#pragma omp parallel for simd num_threads(g->threads)
    for (size_t i = 0; i < pairs_of(a); i++)
        a->scores_out[i] *= gain;
}

/* ---- backward ----------------------------------------------------------------------------- */

void predict_scores_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                         const struct attn *a, struct attn_grad *d)
{
    float *const G = w->d_own[AT_SCORES];
    const float gain = predict_gain(s);

    if (!w->above)
        memset(G, 0, pairs_of(a) * sizeof(float));
    if (predicts_twice(s)) {
        d->d_add = G; /* which gathers on */
        return;
    }
    d->d_scores_out = w->above ? G : NULL;
    if (gain == 0)
        return;
#pragma omp parallel for simd num_threads(g->threads)
    for (size_t i = 0; i < pairs_of(a); i++)
        G[i] *= gain;
}

/* dt, and then d S below and ds, which the core takes to its operands. */
static void evolve_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                        struct around_call n, const struct attn *a, const struct attn_grad *d)
{
    const struct around_work x = around_work_of(s, w->own[AT_AROUND], n, false),
                             to = around_work_of(s, w->d_own[AT_AROUND], n, true);
    const struct predict *const p = &s->c->around.predict;
    const struct field f = field_of(g, s, a);
    const struct attn scores = core_of_scores(&x, a);
    struct attn_grad d_scores = *d;
    float *const G = w->d_own[AT_SCORES];

    only_visible(g, a, G, G);
#pragma omp parallel for simd num_threads(g->threads)
    for (size_t i = 0; i < pairs_of(a); i++) {
        to.mixture[i] = x.add[i] > 0 ? p->alpha * G[i] : 0;
        to.add[i] = (1 - p->alpha) * G[i];
    }
    convolve_weights(&f, s, to.mixture, x.mixture);
    convolve_back(&f, to.add, to.mixture);
    only_visible(g, a, to.add, to.add);
#pragma omp parallel for simd num_threads(g->threads)
    for (size_t i = 0; i < pairs_of(a); i++) {
        G[i] = p->beta * to.add[i];
        to.add[i] *= 1 - p->beta;
    }
    memset(to.zeros, 0, sizeof(float) * (size_t)(n.B * n.L) * (size_t)config_q_width(s->c));
    d_scores.d_o = to.zeros;
    d_scores.d_scores_out = to.add;
    d_scores.d_add = NULL;
    d_scores.d_v = to.d_v; /* nothing, since d_o is 0 */
    d_scores.d_rel_v = NULL;
    s->of.attention.impl->backward(g, &scores, &d_scores, w->d_scratch);
}

void predict_core_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                       struct around_call n, const struct attn *a, const struct attn_grad *d)
{
    const struct attn_impl *const impl = s->of.attention.impl;

    if (predicts_twice(s)) {
        const struct attn sums = core_of_sums(a);
        const struct attn_grad d_sums = {
            .d_o = d->d_o, .d_v = d->d_v, .d_rel_v = d->d_rel_v, .d_add = d->d_add};
        impl->backward(g, &sums, &d_sums, w->d_scratch);
        evolve_grad(g, s, w, n, a, d);
        return;
    }
    impl->backward(g, a, d, w->d_scratch);
    if (!predicts(s))
        return;
    const struct around_work x = around_work_of(s, w->own[AT_AROUND], n, false);
    const struct field f = field_of(g, s, a);
    const float alpha = s->c->around.predict.alpha;
    float *const G = w->d_own[AT_SCORES];
#pragma omp parallel for simd num_threads(g->threads)
    for (size_t i = 0; i < pairs_of(a); i++)
        d->d_add[i] *= alpha / (1 - alpha);
    convolve_weights(&f, s, d->d_add, x.mixture);
    memset(G, 0, pairs_of(a) * sizeof(float));
    convolve_back(&f, G, d->d_add);
    only_visible(g, a, G, G);
}

double predict_flop(const struct sublayer *s, const struct attn *a)
{
    const struct predict *const p = &s->c->around.predict;
    double pairs = 0;

    for (int h = 0; predicts(s) && h < a->H; h++)
        pairs += attn_pairs(a, h);
    return 2.0 * a->B * a->H * p->rows * p->cols * pairs;
}
