/* SPDX-License-Identifier: MIT
 *
 * The language model, backward: from the mean nll of a segment to the gradient of every parameter.
 * A tied embedding receives the gradients of both uses. */
#include "lm.h"
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
                    "training cannot keep memory as keys and values: their weights change  -> "
                    "--mem-kind hidden");
    const enum status st = sublayers_bind_grad(&m->sublayers, g, a, e);
    if (st != OK)
        return st;
    params_place_grad(&m->params, a);
    if (m->c.steps)
        depth_bind_grad(&m->depth, a);
    if (m->c.transparent)
        blend_bind_grad(&m->blend, a);
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
#pragma omp parallel for simd num_threads(n > PARALLEL_MIN ? threads : 1)
    for (size_t i = 0; i < n; i++) {
        const float t = capped[i] / cap;
        d[i] *= 1 - t * t;
    }
}

/* From the logits of states `in` to d, the gradient of these, of `share` of the mean nll. */
static void output_backward(struct lm *m, const struct engine *g, const int32_t *target,
                            const float *in, float *d, double share, int rows)
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
                                       .rows = rows,
                                       .n = c->V,
                                       .threads = g->threads});
    if (capped)
        through_cap(d_logits, capped, c->logit_cap, (size_t)rows * (size_t)c->V, g->threads);
    if (c->out_bias)
        linear_bias_grad(g, &m->params.v[m->at_out_bias], d_logits, rows);
    linear_weight_grad(g, W, d_logits, m->h, rows);
    linear_input_grad(g, W, d, d_logits, rows, 0);
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
        lm_output(m, g, exit_state(t, l), rows);
        g->ops.nll(&(struct nll_op){.nll = m->nll_exit,
                                    .logits = m->logits,
                                    .target = target,
                                    .rows = rows,
                                    .n = m->c.V,
                                    .threads = g->threads});
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

void lm_backward(struct lm *m, const struct engine *g, const int32_t *tokens, const int32_t *target,
                 int B, int L)
{
    CHECK(m->sublayers.kept && B <= m->max.B && m->n_scored == L);
    m->sublayers.open_slope = m->c.cond ? skip_slope(&m->sublayers, B, L) : 0;
    if (!m->c.exit)
        output_backward(m, g, target, m->final_in, m->d_h, 1, B * L);
    if (m->c.steps)
        depth_backward(&m->depth, g, m->d_h, B, L);
    else if (m->c.transparent)
        blend_backward(&m->blend, g, m->d_h, B, L);
    else if (m->c.exit)
        exit_backward(m, g, target, B, L);
    else
        sublayers_backward(&m->sublayers, g, m->d_h, B, L);
    dropout(&m->drop, DROP_EMBEDDING, m->d_h, (size_t)(B * L) * (size_t)m->c.D, g->threads);
    if (m->c.pos->embed_grad)
        m->c.pos->embed_grad(&m->c, &m->params.v[m->at_model], m->d_h, B, L);
    embed_backward(m, tokens, B * L);
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

    /* dX and dW of the output */
    const double blend = m->c.transparent ? 2 * blend_flop(&m->blend, B, L) : 0;

    const double heads = m->c.exit ? 6.0 * (m->c.N - 1) * B * L * m->c.D * m->c.V : 0;

    return 4.0 * B * L * m->c.D * m->c.V + layers + blend + heads;
}
