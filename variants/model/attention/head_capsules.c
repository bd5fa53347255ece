/* SPDX-License-Identifier: MIT
 *
 * Routing by agreement in place of W_o (Li et al. 2019, arXiv:1904.03100). For each position, o_h
 * the output of a head, n a capsule, that is, a part of the D channels:
 *
 *   V_hn = W_hn o_h
 *   y    = what the heads agree on: head_capsules_dynamic.c, head_capsules_em.c
 *
 * The votes V are products of the backend; the rest is a loop over positions. */
#include "head_capsules.h"
#include "around.h"
#include "variants/parts/linear.h"

/* [B,L,H,D] votes of heads; of every iteration [B,L,iters,H,capsules] and [B,L,iters,sums]; [B,L,H,
 * capsules]. Backward: the gradient of votes, and work space, of which sums are [B,L,D + sums_grad].
 */
enum { VOTES, SHARES, SUMS, AGREED };

enum agg { AGG_LINEAR, AGG_DYNAMIC, AGG_EM };
struct capsules {
    enum agg form;
    int n, iters;
    float em_lambda, em_eps;
};

static const struct capsules *capsules_of(const struct config *c)
{
    return config_numbers(c, SLOT_head_capsules);
}

static bool on(const struct config *c) { return capsules_of(c)->form != AGG_LINEAR; }
static bool is_em(const struct config *c) { return capsules_of(c)->form == AGG_EM; }

static const char *const agg_name[] = {"none", "dynamic", "em", NULL};
static const float usual_lambda = 1, usual_eps = 1e-3f;

static const struct agreement *agreement_of(const struct config *c)
{
    return is_em(c) ? &agreement_em : &agreement_dynamic;
}

static const struct choice choices[] = {
    ROW_WORD(struct capsules, form, "agg", agg_name, NULL, .absent = "none"),
    ROW_INT(struct capsules, n, "capsules", 0, MAX_WIDTH, "parts of a row that heads vote on",
            .scope = SCOPE_LAYER, .setting = true, .applies = on, .absent = "0"),
    ROW_INT(struct capsules, iters, "agg_iters", 0, 1 << 10, "iterations in which heads agree",
            .scope = SCOPE_LAYER, .setting = true, .applies = on, .absent = "3"),
    ROW_REAL(struct capsules, em_lambda, "em_lambda", 0, FLT_MAX,
             "how sharply capsules are on or off after many iterations", .scope = SCOPE_LAYER,
             .applies = is_em, .absent = "1", .if_other = true, SETTING),
    ROW_REAL(struct capsules, em_eps, "em_eps", 0, FLT_MAX,
             "what is added to the variance of votes", .scope = SCOPE_LAYER, .applies = is_em,
             .absent = "1e-3", .if_other = true, SETTING),
    {0},
};

/* As many as heads, as far as they divide the width. */
static void usual(const struct config *c, void *numbers)
{
    struct capsules t = {.form = AGG_DYNAMIC, .n = max_int(1, c->H), .iters = 3};

    if (c->variant->em_routing) {
        t.form = AGG_EM;
        t.em_lambda = usual_lambda;
        t.em_eps = usual_eps;
    }
    while (c->D % t.n)
        t.n--;
    *(struct capsules *)numbers = t;
}

static enum status check(const struct config *c, const void *numbers, struct err *e)
{
    const struct capsules *const t = numbers;

    if (t->form == AGG_EM && t->em_eps <= 0)
        return fail(e, E_USAGE, "%s: em_eps 0, where all votes may be alike  -> use more",
                    c->variant->name);
    if (t->form != AGG_EM && (t->em_lambda != 0 || t->em_eps != 0))
        return fail(e, E_USAGE, "%s: em_lambda and em_eps are of agg em  -> leave them out",
                    c->variant->name);
    if (t->n >= 1 && c->D % t->n == 0 && t->iters >= 1 &&
        (int64_t)c->H * c->D * t->iters <= 1 << 30)
        return OK;
    return fail(e, E_USAGE,
                "%s: %d capsules of %d channels, %d iterations  -> use a divisor, 1 or more",
                c->variant->name, t->n, c->D, t->iters);
}

static const struct part_numbers numbers = {choices, .size = NUMBERS_SIZE(struct capsules),
                                            .check = check, .usual = usual};

static void declare(const struct sublayer *s, const char *prefix, struct params *p)
{
    const struct config *const c = s->c;
    const int n = capsules_of(c)->n;

    params_narrows(p, params_add(p, INIT_LINEAR, 0, 4, (const int[]){c->H, n, c->D / n, c->dh},
                                 "%sattn.agg.weight", prefix));
    if (is_em(c)) {
        params_vector(p, INIT_ZERO, 0, n, prefix, "attn.agg.beta_a");
        params_vector(p, INIT_ZERO, 0, n, prefix, "attn.agg.beta_u");
    }
}

static void arrays(const struct sublayer *s, struct around_call n, size_t floats[AROUND_ARRAYS])
{
    const struct capsules *const t = capsules_of(s->c);
    const size_t rows = (size_t)n.B * (size_t)n.L, D = (size_t)s->c->D;
    const size_t shares = (size_t)s->c->H * (size_t)t->n, iters = (size_t)t->iters;
    const struct agreement *const how = agreement_of(s->c);
    const size_t sums = (size_t)how->sums(s->c->D, t->n) * iters;

    floats[VOTES] = rows * (size_t)s->c->H * D;
    floats[SHARES] = n.backward ? 0 : rows * iters * shares;
    floats[SUMS] = rows * (n.backward ? D + (size_t)how->sums_grad(s->c->D, t->n) : sums);
    floats[AGREED] = rows * shares;
}

static struct vote vote_at(const struct part_call *t, ptrdiff_t row)
{
    const struct config *const c = t->s->c;
    const struct capsules *const how = capsules_of(c);
    const ptrdiff_t H = c->H, N = how->n, iters = how->iters, D = c->D;

    return (struct vote){.H = c->H,
                         .N = how->n,
                         .D = c->D,
                         .width = c->D / how->n,
                         .iters = how->iters,
                         .lambda = how->em_lambda,
                         .eps = how->em_eps,
                         .beta_a = is_em(c) ? t->param[1].data : NULL,
                         .beta_u = is_em(c) ? t->param[2].data : NULL,
                         .votes = t->at[VOTES] + row * H * D,
                         .shares = t->at[SHARES] + row * iters * H * N,
                         .sums = t->at[SUMS] + row * iters * agreement_of(c)->sums(c->D, how->n)};
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
        const struct vote p = vote_at(t, row);
        agreement_of(c)->forward(&p, t->w->y + (ptrdiff_t)row * c->D,
                                 t->at[AGREED] + (ptrdiff_t)row * c->H * p.N);
    }
    linear_epilogue(t->g, epilogue, t->w->y, rows, c->D);
}

/* ---- backward ----------------------------------------------------------------------------- */

/* The gradients of beta_a and beta_u, which stand at the end of each row's work space. */
static void add_beta(const struct part_call *t, int rows, ptrdiff_t stride)
{
    const int N = capsules_of(t->s->c)->n;

    for (int i = 0; i < 2 * N; i++) {
        float *const grad = &t->param[1 + i / N].grad[i % N];
        double sum = 0;
        for (ptrdiff_t row = 1; row <= rows; row++)
            sum += (double)t->d_at[SUMS][row * stride - 2 * N + i];
        *grad += (float)sum;
    }
}

static void unproject_grad(const struct part_call *t, float *d_o, const float *d_y, const float *o)
{
    const struct config *const c = t->s->c;
    const struct param *const W = t->param;
    const ptrdiff_t dh = c->dh, D = c->D, HD = c->H * D;
    const ptrdiff_t stride = D + agreement_of(c)->sums_grad(c->D, capsules_of(c)->n);
    const int rows = t->n.B * t->n.L;
    float *const d_votes = t->d_at[VOTES];

#pragma omp parallel for num_threads(t->g->threads)
    for (int row = 0; row < rows; row++) {
        const struct vote p = vote_at(t, row);
        float *const d_row = t->d_at[SUMS] + row * stride;
        memcpy(d_row, d_y + row * D, sizeof(float) * (size_t)D);
        agreement_of(c)->backward(&p, d_votes + row * HD, d_row, d_row + D,
                                  t->d_at[AGREED] + (ptrdiff_t)row * c->H * p.N);
    }
    if (is_em(c))
        add_beta(t, rows, stride);
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
    return agreement_of(t->s->c)->flop * t->rows * capsules_of(t->s->c)->iters * t->s->c->H *
           t->s->c->D;
}

const struct around_part head_capsules = {
    .said = "capsules",
    .numbers = &numbers,
    .params = declare,
    .arrays = arrays,
    .flop = flop,
    .map = {.unproject = unproject, .unproject_grad = unproject_grad},
};
