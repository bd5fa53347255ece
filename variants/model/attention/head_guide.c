/* SPDX-License-Identifier: MIT
 *
 * Guided attention (Deshpande and Narasimhan 2020, "Guiding Attention for Self-Supervised Learning
 * with Transformers", arXiv:2010.02399): a loss of training only that pulls the probabilities p of
 * some heads to fixed patterns P. For each attention, over the guided heads g and all queries i:
 *
 *   loss = guide mean over g, i: sum over j: (p^g_ij - P^g_ij)^2
 *
 * The published mean is over j, too; the sum has the same size for texts of all lengths. P_ij is 1
 * for the one key j that the pattern names, or 1/n for each of the n keys that hold a token; a query
 * that sees no such key has no loss. Heads are guided in the order of the patterns.
 *
 * Fused kernels do not store probabilities: backward asks them for the scores once more, and hands
 * back the gradient of these. Forward is as without it. */
#include "around.h"

enum { SCORES, OUTPUT }; /* [B,H,L,K] and their gradient; [B,L,H,dv], which nothing reads */

enum pattern { PREVIOUS, NEXT, FIRST, TOKEN, PATTERNS };
struct guide {
    float coef; /* 0 = off */
    int heads[PATTERNS];
    int token;
};

static const struct guide *guide_of(const struct config *c)
{
    return config_numbers(c, SLOT_head_guide);
}

static int guided(const struct guide *t)
{
    int n = 0;

    for (int p = 0; p < PATTERNS; p++)
        n += t->heads[p];
    return n;
}

static bool attends(const struct config *c) { return c->pos && (!c->mixer || c->stack.n); }
static bool guides_token(const struct config *c) { return guide_of(c)->heads[TOKEN] > 0; }
static bool on(const struct config *c) { return guide_of(c)->coef > 0 || guided(guide_of(c)) > 0; }

#define ROW_HEADS(pattern, name, ...)                                                              \
    ROW_INT(struct guide, heads[pattern], name, 0, MAX_WIDTH, __VA_ARGS__, .absent = "0",          \
            .if_other = true, .applies = attends, SETTING)

static const struct choice rows[] = {
    ROW_REAL(struct guide, coef, "guide", 0, FLT_MAX,
             "weight of what guided heads look at besides, in the loss", .absent = "0",
             .if_other = true, .applies = attends, SETTING),
    ROW_HEADS(PREVIOUS, "guide_previous", "heads guided to the key before the query"),
    ROW_HEADS(NEXT, "guide_next", "heads guided to the key after the query"),
    ROW_HEADS(FIRST, "guide_first", "heads guided to the first key"),
    ROW_HEADS(TOKEN, "guide_token", "heads guided to the keys that hold guide_symbol"),
    ROW_INT(struct guide, token, "guide_symbol", 0, MAX_WIDTH, "number of that token",
            .absent = "0", .if_other = true, .applies = guides_token, SETTING),
    {0},
};

static enum status check(const struct config *c, const void *numbers, struct err *e)
{
    const struct guide *const t = numbers;
    const char *const name = c->variant->name;

    if (!(t->coef > 0))
        return fail(e, E_USAGE, "%s: guided heads without a weight of their loss  -> set guide",
                    name);
    if (guided(t) < 1)
        return fail(e, E_USAGE, "%s: guide %g without a guided head  -> set guide_previous=1", name,
                    (double)t->coef);
    if (guided(t) > c->H)
        return fail(e, E_USAGE, "%s: %d guided heads of %d  -> guide fewer", name, guided(t), c->H);
    if (t->heads[NEXT] && c->causal)
        return fail(e, E_USAGE,
                    "%s: guide_next in a causal model, which does not see the next key  -> use "
                    "guide_previous, or --direction both",
                    name);
    if (t->heads[TOKEN] && c->V > 0 && t->token >= c->V)
        return fail(e, E_USAGE, "%s: guide_symbol %d of %d tokens  -> use a smaller one", name,
                    t->token, c->V);
    return OK;
}

/* The pattern of head h; PATTERNS = none. */
static enum pattern pattern_of(const struct guide *t, int h)
{
    enum pattern p = 0;

    for (; p < PATTERNS && h >= t->heads[p]; p++)
        h -= t->heads[p];
    return p;
}

static void arrays(const struct sublayer *s, struct around_call n, size_t floats[AROUND_ARRAYS])
{
    const size_t queries = (size_t)n.B * (size_t)n.L * (size_t)s->c->H;

    if (!n.backward)
        return;
    floats[SCORES] = queries * (size_t)n.all;
    floats[OUTPUT] = queries * (size_t)config_dv(s->c);
}

/* One query of a head: its visible keys, and which of them its pattern names. */
struct look {
    const struct part_call *t;
    const struct attn *a;
    enum pattern pattern;
    int b, h, i;
};

/* Keys of memory hold tokens that are no longer known. */
static bool names(const struct look *q, int j)
{
    const int own = q->a->M + q->i, fresh = j - q->a->M;
    const int32_t *const tokens = q->t->w->tokens;

    switch (q->pattern) {
    case PREVIOUS:
        return j == own - 1;
    case NEXT:
        return j == own + 1;
    case FIRST:
        return j == 0;
    default:
        return tokens && fresh >= 0 &&
               tokens[q->b * q->a->L + fresh] == guide_of(q->t->s->c)->token;
    }
}

/* S [K] from the scores of a query to the gradient of its loss times `scale` by them. */
static void guide_row(const struct look *q, float *S, double scale)
{
    double most = -INFINITY, sum = 0, along = 0;
    int named = 0;

    for (struct range r = {0}; attn_next_keys(q->a, q->h, 1, q->i, &r);)
        for (int j = r.from; j < r.to; j++) {
            most = fmax(most, (double)S[j]);
            named += names(q, j);
        }
    for (struct range r = {0}; attn_next_keys(q->a, q->h, 1, q->i, &r);)
        for (int j = r.from; j < r.to; j++)
            sum += exp((double)S[j] - most);
    for (struct range r = {0}; attn_next_keys(q->a, q->h, 1, q->i, &r);)
        for (int j = r.from; j < r.to; j++) {
            const double p = exp((double)S[j] - most) / sum;
            along += p * 2 * (p - (names(q, j) ? 1.0 / named : 0));
        }
    for (struct range r = {0}; attn_next_keys(q->a, q->h, 1, q->i, &r);)
        for (int j = r.from; j < r.to; j++) {
            const double p = exp((double)S[j] - most) / sum;
            const double d = 2 * (p - (names(q, j) ? 1.0 / named : 0));
            S[j] = named ? (float)(scale * p * (d - along)) : 0;
        }
}

static void scores_grad(const struct part_call *t, const struct attn *a, struct attn_grad *d)
{
    const struct guide *const own = guide_of(t->s->c);
    const double scale = (double)own->coef / ((double)a->B * a->L * guided(own));
    struct attn again = *a;

    again.scores_out = t->d_at[SCORES];
    again.o = t->d_at[OUTPUT];
    again.o_at = (struct stride){(ptrdiff_t)a->L * a->H * attn_dv(a), (ptrdiff_t)a->H * attn_dv(a)};
    again.lse = NULL;
    t->s->state.attention.impl->forward(t->g, &again, t->w->scratch);
#pragma omp parallel for num_threads(t->g->threads)
    for (ptrdiff_t i = 0; i < (ptrdiff_t)a->B * a->H * a->L; i++) {
        struct look q = {.t = t,
                         .a = a,
                         .b = (int)(i / a->L / a->H),
                         .h = (int)(i / a->L % a->H),
                         .i = (int)(i % a->L)};
        float *const S = t->d_at[SCORES] + attn_scores_at(a, q.b, q.h, q.i);
        q.pattern = pattern_of(own, q.h);
        if (q.pattern == PATTERNS)
            memset(S, 0, sizeof(*S) * (size_t)attn_keys(a));
        else
            guide_row(&q, S, scale);
    }
    d->d_scores_out = t->d_at[SCORES];
}

const struct around_part head_guide = {
    .said = "guided heads",
    .on = on,
    .training = true,
    .numbers =
        &(const struct part_numbers){
            rows, PRESET(struct guide, .coef = 1, .heads = {[PREVIOUS] = 1}), check},
    /* probabilities of one softmax over keys that are tokens, whose scores nothing else takes */
    .excludes =
        EXCLUDES(HAS_head_diff, HAS_term_predict, HAS_POOLED, HAS_EXTRA, HAS_SCORE_RESIDUAL),
    .arrays = arrays,
    .map = {.scores_grad = scores_grad},
};
