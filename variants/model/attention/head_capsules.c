/* SPDX-License-Identifier: MIT
 *
 * Routing by agreement in place of W_o (Li et al. 2019, arXiv:1904.03100). For each position, o_h
 * the output of a head, n a capsule, that is, a part of the D channels:
 *
 *   V_hn      = W_hn o_h
 *   squash(x) = x |x|^2 / ((1 + |x|^2) sqrt(|x|^2 + 1e-9))
 *
 * and for each iteration, with b_hn = 0 at first:
 *
 *   c_hn  = softmax over n of b_hn
 *   S_n   = sum_h c_hn V_hn
 *   y_n   = squash(S_n)
 *   b_hn += y_n . V_hn
 *
 * The votes are products of the backend; the rest is a loop over positions. */
#include "around.h"
#include "variants/base/loops.h"
#include "variants/model/choices.h"
#include "variants/model/sublayer/sublayer_inner.h"
#include "variants/parts/linear.h"

#include <math.h>
#include <string.h>

static const double squash_eps = 1e-9;

/* [B,L,H,D] votes of heads; of every iteration [B,L,iters,H,capsules] and [B,L,iters,D]; [B,L,H,
 * capsules]. Backward: the gradient of votes, and work space, of which sums are [B,L,2,D]. */
enum { VOTES, SHARES, SUMS, AGREED };

enum agg { AGG_LINEAR, AGG_DYNAMIC };
struct capsules {
    enum agg form;
    int n, iters;
};

static const struct capsules *capsules_of(const struct config *c)
{
    return config_numbers(c, SLOT_head_capsules);
}

static bool on(const struct config *c) { return capsules_of(c)->form != AGG_LINEAR; }

static const char *const agg_name[] = {"none", "dynamic", NULL};

static const struct choice choices[] = {
    ROW_WORD(struct capsules, form, "agg", agg_name, NULL, .absent = "none"),
    ROW_INT(struct capsules, n, "capsules", 0, MAX_WIDTH, "parts of a row that heads vote on",
            .scope = SCOPE_LAYER, .setting = true, .applies = on, .absent = "0"),
    ROW_INT(struct capsules, iters, "agg_iters", 0, 1 << 10, "iterations in which heads agree",
            .scope = SCOPE_LAYER, .setting = true, .applies = on, .absent = "3"),
    {0},
};

/* As many as heads, as far as they divide the width. */
static void usual(const struct config *c, void *numbers)
{
    struct capsules t = {AGG_DYNAMIC, max_int(1, c->H), 3};

    while (c->D % t.n)
        t.n--;
    *(struct capsules *)numbers = t;
}

static enum status check(const struct config *c, const void *numbers, struct err *e)
{
    const struct capsules *const t = numbers;

    if (t->n >= 1 && c->D % t->n == 0 && t->iters >= 1 &&
        (int64_t)c->H * c->D * t->iters <= 1 << 30)
        return OK;
    return fail(e, E_USAGE,
                "%s: %d capsules of %d channels, %d iterations  -> use a divisor, 1 or more",
                c->variant->name, t->n, c->D, t->iters);
}

static const struct part_numbers numbers = {choices, NUMBERS_SIZE(struct capsules), usual, check};

static void declare(const struct sublayer *s, const char *prefix, struct params *p)
{
    const struct config *const c = s->c;
    const int n = capsules_of(c)->n;

    params_narrows(p, params_add(p, INIT_LINEAR, 0, 4, (const int[]){c->H, n, c->D / n, c->dh},
                                 "%sattn.agg.weight", prefix));
}

static void arrays(const struct sublayer *s, struct around_call n, bool backward,
                   size_t floats[AROUND_ARRAYS])
{
    const struct capsules *const t = capsules_of(s->c);
    const size_t rows = (size_t)n.B * (size_t)n.L, D = (size_t)s->c->D;
    const size_t shares = (size_t)s->c->H * (size_t)t->n, iters = (size_t)t->iters;

    floats[VOTES] = rows * (size_t)s->c->H * D;
    floats[SHARES] = backward ? 0 : rows * iters * shares;
    floats[SUMS] = rows * (backward ? 2 : iters) * D;
    floats[AGREED] = rows * shares;
}

/* One position: votes [H,D], and of every iteration shares c [H,N] and sums S [D]. */
struct position {
    int H, N, D, width; /* width of a capsule */
    int iters;
    const float *votes;
    float *shares, *sums;
};

static struct position position_of(const struct part_call *t, ptrdiff_t row)
{
    const struct config *const c = t->s->c;
    const ptrdiff_t H = c->H, N = capsules_of(c)->n, iters = capsules_of(c)->iters;

    return (struct position){.H = c->H,
                             .N = (int)N,
                             .D = c->D,
                             .width = c->D / (int)N,
                             .iters = (int)iters,
                             .votes = t->at[VOTES] + row * H * c->D,
                             .shares = t->at[SHARES] + row * iters * H * N,
                             .sums = t->at[SUMS] + row * iters * c->D};
}

/* squash(x) = factor(|x|^2) x, and its slope by |x|^2 */
static double factor(double n2) { return n2 / ((1 + n2) * sqrt(n2 + squash_eps)); }

static double factor_slope(double n2)
{
    const double root = sqrt(n2 + squash_eps);

    return 1 / ((1 + n2) * (1 + n2) * root) - n2 / (2 * (1 + n2) * root * (n2 + squash_eps));
}

static void squash(float *y, const float *x, int n)
{
    const double f = factor(dot_in_order(x, x, n));

    for (int e = 0; e < n; e++)
        y[e] = (float)(f * (double)x[e]);
}

/* c [N] = softmax of b [N], which may be c. */
static void softmax_row(float *c, const float *b, int N)
{
    float most = b[0];
    double sum = 0;

    for (int n = 1; n < N; n++)
        most = fmaxf(most, b[n]);
    for (int n = 0; n < N; n++)
        sum += exp((double)(b[n] - most));
    for (int n = 0; n < N; n++)
        c[n] = (float)(exp((double)(b[n] - most)) / sum);
}

/* y [D] of one position; b [H,N] is work space. */
static void agree(const struct position *p, float *y, float *b)
{
    memset(b, 0, sizeof(float) * (size_t)(p->H * p->N));
    for (int t = 0; t < p->iters; t++) {
        float *const c = p->shares + (ptrdiff_t)t * p->H * p->N;
        float *const S = p->sums + (ptrdiff_t)t * p->D;
        memset(S, 0, sizeof(float) * (size_t)p->D);
        for (int h = 0; h < p->H; h++) {
            softmax_row(c + (ptrdiff_t)h * p->N, b + (ptrdiff_t)h * p->N, p->N);
            for (int e = 0; e < p->D; e++)
                S[e] += c[h * p->N + e / p->width] * p->votes[(ptrdiff_t)h * p->D + e];
        }
        for (int n = 0; n < p->N; n++)
            squash(y + (ptrdiff_t)n * p->width, S + (ptrdiff_t)n * p->width, p->width);
        for (int i = 0; i < p->H * p->N && t + 1 < p->iters; i++) {
            const ptrdiff_t n = i % p->N, h = i / p->N;
            b[i] +=
                (float)dot_in_order(y + n * p->width, p->votes + h * p->D + n * p->width, p->width);
        }
    }
}

/* V_h [rows,D] = W_h o_h for every head. */
static void vote(const struct part_call *t, const float *o, int rows)
{
    const struct config *const c = t->s->c;
    const ptrdiff_t dh = c->dh, D = c->D;

    for (int h = 0; h < c->H; h++) {
        const struct param W = param_rows(t->param, h * D, c->D);
        struct gemm p = mm_of(t->g, NT, rows, c->D, c->dh, 1, o + h * dh, c->H * dh, W.data, dh, 0,
                              t->at[VOTES] + h * D, c->H * D);
        linear_narrow(&p, &W);
        t->g->ops.gemm(&p);
    }
}

static void unproject(const struct part_call *t, const float *o, struct act epilogue)
{
    const struct config *const c = t->s->c;
    const int rows = t->n.B * t->n.L;

    vote(t, o, rows);
#pragma omp parallel for num_threads(t->g->threads)
    for (int row = 0; row < rows; row++) {
        const struct position p = position_of(t, row);
        agree(&p, t->w->y + (ptrdiff_t)row * c->D,
              t->at[AGREED] + (ptrdiff_t)row * c->H * capsules_of(c)->n);
    }
    epilogue.x = t->w->y;
    epilogue.rows = rows;
    epilogue.n = c->D;
    epilogue.threads = t->g->threads;
    t->g->ops.act(&epilogue);
}

/* ---- backward ----------------------------------------------------------------------------- */

/* d of squash(x) by x, times d_y. */
static void squash_grad(float *d_x, const float *x, const float *d_y, int n)
{
    const double n2 = dot_in_order(x, x, n), f = factor(n2),
                 along = 2 * factor_slope(n2) * dot_in_order(x, d_y, n);

    for (int e = 0; e < n; e++)
        d_x[e] = (float)(f * (double)d_y[e] + along * (double)x[e]);
}

/* d_V [H,D] of one position from d_y [D], which is overwritten; d_S [D] and d_b [H,N] are work
 * space. What b gathers reaches all iterations before. */
static void agree_grad(const struct position *p, float *d_V, float *d_y, float *d_S, float *d_b)
{
    const ptrdiff_t D = p->D, N = p->N, width = p->width;

    memset(d_V, 0, sizeof(float) * (size_t)(p->H * D));
    memset(d_b, 0, sizeof(float) * (size_t)(p->H * N));
    for (int t = p->iters - 1; t >= 0; t--) {
        const float *const c = p->shares + (ptrdiff_t)t * p->H * N, *const S = p->sums + t * D;
        for (ptrdiff_t n = 0; n < N; n++)
            squash_grad(d_S + n * width, S + n * width, d_y + n * width, p->width);
        for (ptrdiff_t h = 0; h < p->H; h++) {
            const float *const V = p->votes + h * D, *const share = c + h * N;
            double mean = 0;
            for (ptrdiff_t n = 0; n < N; n++)
                mean += (double)share[n] * dot_in_order(d_S + n * width, V + n * width, p->width);
            for (ptrdiff_t n = 0; n < N; n++)
                d_b[h * N + n] +=
                    (float)((double)share[n] *
                            (dot_in_order(d_S + n * width, V + n * width, p->width) - mean));
            for (ptrdiff_t e = 0; e < D; e++)
                d_V[h * D + e] += share[e / width] * d_S[e];
        }
        if (t == 0)
            return;
        /* b of this iteration has y of the one before: y is made again in d_S */
        const float *const before = p->sums + (t - 1) * D;
        memset(d_y, 0, sizeof(float) * (size_t)D);
        for (ptrdiff_t n = 0; n < N; n++)
            squash(d_S + n * width, before + n * width, p->width);
        for (ptrdiff_t h = 0; h < p->H; h++)
            for (ptrdiff_t e = 0; e < D; e++) {
                d_y[e] += d_b[h * N + e / width] * p->votes[h * D + e];
                d_V[h * D + e] += d_b[h * N + e / width] * d_S[e];
            }
    }
}

static void unproject_grad(const struct part_call *t, float *d_o, const float *d_y, const float *o)
{
    const struct config *const c = t->s->c;
    const struct param *const W = t->param;
    const ptrdiff_t dh = c->dh, D = c->D, HD = c->H * D;
    const int rows = t->n.B * t->n.L;
    float *const d_votes = t->d_at[VOTES];

#pragma omp parallel for num_threads(t->g->threads)
    for (int row = 0; row < rows; row++) {
        const struct position p = position_of(t, row);
        float *const d_row = t->d_at[SUMS] + row * 2 * D;
        memcpy(d_row, d_y + row * D, sizeof(float) * (size_t)D);
        agree_grad(&p, d_votes + row * HD, d_row, d_row + D,
                   t->d_at[AGREED] + (ptrdiff_t)row * c->H * capsules_of(c)->n);
    }
    for (int h = 0; h < c->H; h++) {
        mm(t->g, TN, c->D, c->dh, rows, 1, d_votes + h * D, HD, o + h * dh, c->H * dh, 1,
           W->grad + h * D * dh, dh);
        mm(t->g, NN, rows, c->dh, c->D, 1, d_votes + h * D, HD, W->data + h * D * dh, dh, 0,
           d_o + h * dh, c->H * dh);
    }
}

/* Of agreeing, without the votes, which cost what W_o does. */
static double flop(const struct part_cost *t)
{
    return 4 * t->rows * capsules_of(t->s->c)->iters * t->s->c->H * t->s->c->D;
}

const struct around_part head_capsules = {
    .said = "capsules",
    .numbers = &numbers,
    .params = declare,
    .arrays = arrays,
    .flop = flop,
    .map = {.unproject = unproject, .unproject_grad = unproject_grad},
};
