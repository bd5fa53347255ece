/* SPDX-License-Identifier: MIT
 *
 * The language model, backward: from the mean nll of a segment to the gradient of every parameter.
 * A tied embedding receives the gradients of both uses. */
#include "lm.h"
#include "variants/base/loops.h"
#include "variants/model/sublayer/sublayer_compress.h"
#include "variants/model/sublayer/sublayer_inner.h"
#include "variants/model/sublayer/sublayer_skip.h"
#include "variants/parts/linear.h"
#include "variants/parts/norm.h"

#include <string.h>

enum status lm_bind_grad(struct lm *m, const struct engine *g, struct arena *a, struct err *e)
{
    const size_t n = (size_t)m->max.B * (size_t)m->max.L * (size_t)m->c.D;

    if (m->kind == MEM_KV)
        return fail(e, E_UNSUPPORTED,
                    "training cannot keep memory as keys and values: their weights change  -> use "
                    "--mem-kind hidden");
    const enum status st = sublayers_bind_grad(&m->sublayers, g, a, e);
    if (st != OK)
        return st;
    params_place_grad(&m->params, a);
    if (m->c.steps)
        depth_bind_grad(&m->depth, a);
    if (m->c.transparent)
        blend_bind_grad(&m->blend, a);
    if (m->c.feedback.on)
        feedback_bind_grad(&m->feedback, a);
    if (m->c.slots.n && slots_bind_grad(&m->slots, a, e) != OK)
        return E_NOMEM;
    m->final_in = m->c.final_ln ? arena_f32(a, PART_ACTIVATIONS, n) : NULL;
    m->d_h = arena_f32(a, PART_ACTIVATIONS, n);
    m->d_exit = m->c.exit ? arena_f32(a, PART_ACTIVATIONS, n) : NULL;
    m->nll_exit =
        m->c.exit ? arena_f32(a, PART_ACTIVATIONS, (size_t)m->max.B * (size_t)m->max.L) : NULL;
    m->capped =
        m->c.logit_cap != 0
            ? arena_f32(a, PART_ACTIVATIONS, (size_t)m->max.B * (size_t)m->max.L * (size_t)m->c.V)
            : NULL;
    return OK;
}

/* d <- d (1 - tanh^2), from what the cap returned. */
static void through_cap(float *d, const float *capped, float cap, size_t n, int threads)
{
#pragma omp parallel for simd num_threads(team_for(threads, n))
    for (size_t i = 0; i < n; i++) {
        const float t = capped[i] / cap;
        d[i] *= 1 - t * t;
    }
}

/* From the logits to d, the gradient of m->h. */
static void logits_backward(struct lm *m, const struct engine *g, const int32_t *target, float *d,
                            double share, int rows)
{
    const struct config *c = &m->c;
    const struct param *W = &m->params.v[c->tied ? m->at_embed : m->at_out];
    float *d_logits = m->logits;
    const float *const capped = m->capped;

    if (capped)
        memcpy(m->capped, m->logits, sizeof(float) * (size_t)rows * (size_t)c->V);

    g->ops.nll_grad(&(struct nll_grad){.d_logits = d_logits,
                                       .logits = m->logits,
                                       .target = target,
                                       .scale = (float)(share / rows),
                                       .z = m->z_loss,
                                       .rows = rows,
                                       .n = c->V,
                                       .threads = g->threads});
    if (capped)
        through_cap(d_logits, capped, c->logit_cap, (size_t)rows * (size_t)c->V, g->threads);
    if (c->out_bias)
        linear_bias_grad(g, &m->params.v[m->at_out_bias], d_logits, rows);
    linear_weight_grad(g, W, d_logits, m->h, rows);
    linear_input_grad(g, W, d, d_logits, rows, 0);
}

/* From the output of states `in` to d, the gradient of these, of `share` of the mean nll. */
static void output_backward(struct lm *m, const struct engine *g, const int32_t *target,
                            const float *in, float *d, double share, int rows)
{
    const struct config *c = &m->c;

    if (lm_has_logits(m))
        logits_backward(m, g, target, d, share, rows);
    else
        adaptive_out_grad(&m->words, g, m->h, d, share, m->z_loss, rows);
    dropout(&m->drop, DROP_FINAL, d, (size_t)rows * (size_t)c->D, g->threads);
    if (c->final_ln)
        norm_backward(g, c, &m->params.v[m->at_final_ln], d, d, in, m->sublayers.work[0].stats,
                      rows, rows);
}

/* Every layer has a loss: layer l of N counts l / (1 + .. + N). */
static void exit_backward(struct lm *m, const struct engine *g, const int32_t *target, int B, int L)
{
    const struct early_exit *const t = &m->exit;
    const int N = m->c.N, rows = B * L;

    m->exit_loss = 0;
    for (int l = N; l >= 1; l--) {
        const double share = 2.0 * l / (N * (N + 1.0));
        const int first = sublayers_first(&m->sublayers, l - 1);
        float *const d = l == N ? m->d_h : m->d_exit;
        lm_score(m, g, exit_state(t, l), target, m->nll_exit, rows);
        for (int i = 0; i < rows; i++)
            m->exit_loss += share * (double)m->nll_exit[i] / rows;
        output_backward(m, g, target, exit_state(t, l), d, share, rows);
        if (l < N)
            g->ops.act(&(struct act){.y = m->d_h,
                                     .x = m->d_h,
                                     .add = d,
                                     .rows = rows,
                                     .n = m->c.D,
                                     .threads = g->threads});
        sublayers_part_backward(&m->sublayers, g, first, sublayers_first(&m->sublayers, l) - first,
                                m->d_h, B, L);
    }
}

/* dE[token] += emb_scale * d_h, in token order, which does not depend on threads. */
static void embed_backward(const struct lm *m, const int32_t *tokens, int rows)
{
    const int D = m->c.D;
    float *d_E = m->params.v[m->at_embed].grad; /* [V,D] */

    for (ptrdiff_t t = 0; t < rows; t++)
        for (int e = 0; e < D; e++)
            d_E[(ptrdiff_t)tokens[t] * D + e] += m->c.emb_scale * m->d_h[t * D + e];
}

/* From the gradient of the stream after the embedding. */
static void enter_backward(struct lm *m, const struct engine *g, const int32_t *tokens, int B,
                           int L)
{
    dropout(&m->drop, DROP_EMBEDDING, m->d_h, (size_t)(B * L) * (size_t)m->c.D, g->threads);
    if (m->c.pos->embed_grad)
        m->c.pos->embed_grad(&m->c, &m->params.v[m->at_model], m->sublayers.pos_encoding,
                             m->max.M + m->max.L, m->d_h, B, L);
    if (m->c.pos->from_tokens_grad)
        m->c.pos->from_tokens_grad(&m->c, &m->params.v[m->at_embed], tokens, m->d_h, B, L,
                                   g->threads);
    else if (has_clusters(&m->c))
        adaptive_embed_grad(&m->words, g, tokens, m->d_h, B * L);
    else
        embed_backward(m, tokens, B * L);
}

/* The gradient of the slots that the segment read reaches the writes before it. */
static void replay(struct lm *m, const struct engine *g, int B, int L)
{
    struct slots *const t = &m->slots;
    const struct config *const c = &m->c;
    const struct dropout drop = m->drop;
    const size_t slots = (size_t)(B * c->slots.n) * (size_t)c->D * sizeof(float);

    slots_leave(t, &m->drop, B, L);
    const struct past_segment *p;
    for (int i = 0; (p = slots_past(t, i)); i++) {
        const int past = p->head->L, rows = B * past;
        memcpy(t->d_next, t->d, slots);
        memset(t->d, 0, slots);
        slots_go(t, i, B);
        m->drop = p->head->drop;
        lm_states(m, g, p->tokens, m->final_in ? m->final_in : m->h, B, past);
        slots_write_grad(t, g, B, past);
        memcpy(m->d_h, t->d_h, sizeof(float) * (size_t)rows * (size_t)c->D);
        if (c->final_ln)
            norm_backward(g, c, &m->params.v[m->at_final_ln], m->d_h, m->d_h, m->final_in,
                          m->sublayers.work[0].stats, rows, rows);
        sublayers_backward(&m->sublayers, g, m->d_h, B, past);
        enter_backward(m, g, p->tokens, B, past);
    }
    m->drop = drop;
    slots_first_grad(t, B);
    slots_return(t, B);
}

/* The least index of a parameter of sub-layers [from, n), and the largest of those before `from`;
 * own parameters are listed sub-layer after sub-layer, those of the model before them. -1 = there
 * is none.
 */
static void list_bounds(const struct sublayers *s, int from, int *least, int *below)
{
    *least = *below = -1;
    for (int i = 0; i < s->n; i++) {
        const struct sublayer *const t = &s->at[i];
        const int at[] = {t->at_weights,    t->at_norm,   t->at_gate, t->at_alpha,   t->at_qkv_map,
                          t->at_attn_extra, t->at_around, t->at_skip, t->at_compress};
        for (size_t k = 0; k < ARRAY_LEN(at); k++)
            if (at[k] >= 0 && i >= from)
                *least = *least < 0 ? at[k] : min_int(*least, at[k]);
            else if (at[k] >= 0)
                *below = max_int(*below, at[k]);
    }
}

/* Layer after layer, told of what each completes: nothing where a layer below shares its
 * parameters. */
static void layers_backward(struct lm *m, const struct engine *g, int B, int L)
{
    struct sublayers *const s = &m->sublayers;

    for (int end = s->n; end > 0;) {
        const int first = sublayers_first(s, s->at[end - 1].layer);
        int least, below;
        sublayers_part_backward(s, g, first, end - first, m->d_h, B, L);
        end = first;
        if (!m->complete)
            continue;
        list_bounds(s, first, &least, &below);
        if (least > below && least > 0)
            m->complete(m->complete_arg, least);
    }
}

void lm_backward(struct lm *m, const struct engine *g, const int32_t *tokens, const int32_t *target,
                 int B, int L)
{
    CHECK(m->sublayers.kept && B <= m->max.B && m->n_scored == L);
    double slope = m->c.cond ? (double)skip_slope(&m->sublayers, B, L) : 0;
    if (m->c.cond && g->mean) /* it is linear in the mean of the gates */
        g->mean(g->mean_arg, &slope, 1);
    m->sublayers.open_slope = (float)slope;
    if (m->c.slots.n)
        memset(m->slots.d, 0, sizeof(float) * (size_t)(B * m->c.slots.n) * (size_t)m->c.D);
    if (!m->c.exit)
        output_backward(m, g, target, m->final_in, m->d_h, 1, B * L);
    if (m->c.steps)
        depth_backward(&m->depth, g, m->d_h, B, L);
    else if (m->c.transparent)
        blend_backward(&m->blend, g, m->d_h, B, L);
    else if (m->c.exit)
        exit_backward(m, g, target, B, L);
    else if (m->c.feedback.on)
        feedback_backward(&m->feedback, g, m->d_h, B, L);
    else if (m->c.slots.bptt) /* again, for earlier segments */
        sublayers_backward(&m->sublayers, g, m->d_h, B, L);
    else
        layers_backward(m, g, B, L);
    enter_backward(m, g, tokens, B, L);
    if (m->c.slots.bptt)
        replay(m, g, B, L);
    if (m->complete)
        m->complete(m->complete_arg, 0);
}

double lm_aux(const struct lm *m, int B, int L)
{
    const struct sublayers *const s = &m->sublayers;
    double sum = 0;

    CHECK(s->kept);
    for (int i = 0; i < s->n; i++)
        if (s->at[i].kind->aux && rows_after(&s->at[i], L) > 0)
            sum += s->at[i].kind->aux(&s->at[i], &s->work[i], B * rows_after(&s->at[i], L));
    return sum;
}

double lm_reconstruction(struct lm *m, const struct engine *g, int B, int L)
{
    struct sublayers *const s = &m->sublayers;
    double sum = 0;

    CHECK(s->kept);
    for (int i = 0; i < s->n; i++)
        sum += sublayer_reconstruction(g, &s->at[i], &s->work[i], B, L);
    return sum;
}

double lm_grad_flop(const struct lm *m, int B, int L, int M)
{
    const double layers = m->c.steps ? depth_grad_flop(&m->depth, B, L, M)
                                     : sublayers_grad_flop(&m->sublayers, B, L, M);

    const double blend = m->c.transparent ? 2 * blend_flop(&m->blend, B, L) : 0;

    const double heads = m->c.exit ? 3.0 * (m->c.N - 1) * B * L * lm_row_flop(m) : 0;

    /* dX and dW of the output */
    const double words = has_clusters(&m->c)
                             ? 2 * (adaptive_in_flop(&m->words) + adaptive_out_flop(&m->words))
                             : 4.0 * B * L * m->c.D * m->c.V;

    return words + layers + blend + heads;
}
