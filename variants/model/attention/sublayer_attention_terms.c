/* SPDX-License-Identifier: MIT
 *
 * Attention as a kind of sub-layer: the terms of its scores besides queries and keys, that is, the
 * model's schemes and the score residual from one attention to the next. */
#include "sublayer_attention.h"
#include "variants/parts/masks.h"

struct term_params attention_term_params(const struct sublayer *s)
{
    return (struct term_params){s->model, s->state.attention.pos, s->attn_extra};
}

/* ---- score residual ----------------------------------------------------------------------- */

size_t attention_scores_floats(const struct sublayer *s, struct extent max)
{
    const size_t pairs = (size_t)max.L * (size_t)(max.M + max.L);

    return s->c->score_residual || s->c->lazy_group > 1 || around_hands_on(s->c)
               ? (size_t)max.B * (size_t)s->c->H * pairs
               : 0;
}

struct attn attention_for_impl(const struct sublayer *s)
{
    static const float something = 0;
    static const uint16_t half = 0;
    static const uint32_t word = 0;
    struct attn a = masks_placeholder(&s->state.attention.prepared);

    if (s->mem == MEM_KV && s->c->kv_dtype == ELEM_BF16)
        a.v_bf16 = &half;
    if (s->mem == MEM_KV && s->c->kv_dtype == ELEM_Q8)
        a.v_q8 = &word;
    if (s->c->stream_sinks)
        return streaming_for_impl(&a);
    around_placeholder(s->c, &a);
    if (around_guides(s->c))
        a.scores_out = (float *)&something;
    if (s->c->score_residual)
        a.add.at = &something;
    if (s->lazy)
        a.add.at = &something;
    else if (s->c->lazy_group > 1)
        a.scores_out = (float *)&something;
    if (around_hands_on(s->c)) {
        a.scores_out = (float *)&something;
        a.gain = around_gain(s);
    }
    if (!s->c->score_residual)
        return a;
    a.scores_out = (float *)&something;
    a.gain = s->c->score_residual == SCORE_RESIDUAL_MEAN;
    return a;
}

/* A lazy layer reads the scores that the first of its group has left. */
static void lazy_scores(const struct sublayer *s, const struct work *w, struct attn *a)
{
    const ptrdiff_t K = attn_keys(a), head = a->L * K;
    const struct work *first = w;

    for (int i = 0; i < s->lazy; i++)
        first = first->below;
    if (s->lazy)
        a->add = (struct dense){first->array[AT_SCORES], head * a->H, head, K};
    else if (w->above)
        a->scores_out = w->array[AT_SCORES];
}

/* Their gradient gathers over the group and then reaches its first layer. */
static void lazy_scores_grad(const struct sublayer *s, const struct work *w, size_t n,
                             struct attn_grad *d)
{
    float *const G = w->d_array[AT_SCORES];
    const bool last = !w->above || s->lazy == s->c->lazy_group - 1;

    if (last)
        memset(G, 0, n * sizeof(float));
    if (s->lazy)
        d->d_add = G;
    else if (!last)
        d->d_scores_out = G;
}

void attention_score_residual(const struct sublayer *s, const struct work *w, struct attn *a)
{
    const ptrdiff_t K = attn_keys(a), head = a->L * K;

    if (s->c->lazy_group > 1)
        lazy_scores(s, w, a);
    if (!s->c->score_residual)
        return;
    if (w->below)
        a->add = (struct dense){w->below->array[AT_SCORES], head * a->H, head, K};
    if (w->above)
        a->scores_out = w->array[AT_SCORES];
    if (s->c->score_residual == SCORE_RESIDUAL_MEAN)
        a->gain = 1 / (float)(s->nth + 1);
}

void attention_score_residual_grad(const struct sublayer *s, const struct work *w,
                                   const struct attn *a, struct attn_grad *d)
{
    float *const G = w->d_array[AT_SCORES];
    const size_t n = (size_t)a->B * (size_t)a->H * (size_t)a->L * (size_t)attn_keys(a);

    if (s->c->lazy_group > 1)
        lazy_scores_grad(s, w, n, d);
    if (!s->c->score_residual)
        return;
    if (!w->above)
        memset(G, 0, n * sizeof(float));
    d->d_scores_out = G;
    if (w->below)
        d->d_add = G;
}

/* ---- cost --------------------------------------------------------------------------------- */

struct attn attention_for_flop(const struct sublayer *s, int B, int L, int M)
{
    static const float something = 0;
    struct attn a = s->state.attention.prepared;

    attention_resize(s, &a, L, M);
    a.B = B;
    masks_draw(&s->c->masks, s->nth, &a);
    around_placeholder(s->c, &a);
    if (s->c->score_residual && s->nth > 0) { /* one addition per pair forward, one backward */
        a.add.at = &something;
        a.scores_out = (float *)&something;
    }
    return a;
}
