/* SPDX-License-Identifier: MIT
 *
 * The language model, backward: from the mean nll of a segment to the gradient of every parameter.
 * A tied embedding receives the gradients of both uses. */
#include "lm.h"
#include "variants/model/sublayer/sublayer_compress.h"
#include "variants/model/sublayer/sublayer_inner.h"

enum status lm_bind_grad(struct lm *m, const struct engine *g, struct arena *a, struct err *e)
{
    const size_t n = (size_t)m->max.B * (size_t)m->max.L * (size_t)m->c.D;

    if (m->kind == MEM_KV)
        return fail(e, E_UNSUPPORTED,
                    "training cannot keep memory as keys and values: their weights change  -> use "
                    "--mem-kind hidden");
    TRY(sublayers_bind_grad(&m->sublayers, g, a, e));
    params_place_grad(&m->params, a);
    if (m->drive->bind_grad)
        TRY(m->drive->bind_grad(m, g, a, e));
    m->final_in = m->c.final_ln ? arena_f32(a, PART_ACTIVATIONS, n) : NULL;
    m->d_h = arena_f32(a, PART_ACTIVATIONS, n);
    m->capped =
        m->c.logit_cap != 0
            ? arena_f32(a, PART_ACTIVATIONS, (size_t)m->max.B * (size_t)m->max.L * (size_t)m->c.V)
            : NULL;
    return OK;
}

/* dE[token] += emb_scale * d, in token order, which does not depend on threads. */
static void rows_backward(const struct lm *m, const float *d, const int32_t *tokens, int rows)
{
    const int D = m->c.D;
    float *d_E = m->params.v[m->at_embed].grad; /* [V,D] */

    for (ptrdiff_t t = 0; t < rows; t++)
        for (int e = 0; e < D; e++)
            d_E[(ptrdiff_t)tokens[t] * D + e] += m->c.emb_scale * d[t * D + e];
}

void lm_embed_grad(struct lm *m, const struct engine *g, const struct sublayers *s, int n, float *d,
                   const int32_t *tokens, int B, int L)
{
    const struct pos *const pos = m->c.pos;

    if (pos->embed_grad)
        pos->embed_grad(s->at->c, &m->params.v[s->at_model], s->pos_encoding, n, d, B, L);
    if (pos->from_tokens_grad)
        pos->from_tokens_grad(&m->c, &m->params.v[m->at_embed], tokens, d, B, L, g->threads);
    else if (has_clusters(&m->c))
        adaptive_embed_grad(&m->words, g, tokens, d, B * L);
    else
        rows_backward(m, d, tokens, B * L);
}

void lm_embed_backward(struct lm *m, const struct engine *g, const int32_t *tokens, int B, int L)
{
    dropout(&m->drop, DROP_EMBEDDING, m->d_h, (size_t)(B * L) * (size_t)m->c.D, g->threads);
    lm_embed_grad(m, g, &m->sublayers, m->max.M + m->max.L, m->d_h, tokens, B, L);
}

void lm_backward(struct lm *m, const struct engine *g, const int32_t *tokens, const int32_t *target,
                 int B, int L)
{
    CHECK(m->sublayers.kept && B <= m->max.B && m->n_scored == L);
    CHECK(!m->d_logits || (lm_has_logits(m) && !m->drive->heads));
    double slope = m->c.cond ? (double)sublayers_skip_slope(&m->sublayers, B, L) : 0;
    if (m->c.cond && g->mean) /* it is linear in the mean of the gates */
        g->mean(g->mean_arg, &slope, 1);
    m->sublayers.open_slope = (float)slope;
    if (!m->drive->heads) {
        lm_output_backward(m, g, target, m->final_in, m->d_h, 1, lm_rows(m, B, L));
        lm_unpick(m, m->d_h, B, L);
    }
    m->drive->backward(m, g, target, B, L);
    lm_embed_backward(m, g, tokens, B, L);
    if (m->drive->replay)
        m->drive->replay(m, g, B, L);
    if (m->complete)
        m->complete(m->complete_arg, 0);
}

static double aux_of(const struct sublayers *s, int B, int L)
{
    double sum = 0;

    CHECK(s->kept);
    for (int i = 0; i < s->n; i++)
        if (s->at[i].kind->aux && rows_after(&s->at[i], L) > 0)
            sum += s->at[i].kind->aux(&s->at[i], &s->work[i], B * rows_after(&s->at[i], L));
    return sum;
}

double lm_aux(const struct lm *m, int B, int L)
{
    const struct sublayers *const own = m->drive->layers ? m->drive->layers(m) : NULL;

    return aux_of(&m->sublayers, B, L) + (own ? aux_of(own, B, own->max.L) : 0);
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
    /* dX and dW of the output */
    const double words = has_clusters(&m->c)
                             ? 2 * (adaptive_in_flop(&m->words) + adaptive_out_flop(&m->words))
                             : 4.0 * B * L * m->c.D * m->c.V;

    return words + m->drive->grad_flop(m, B, L, M);
}
