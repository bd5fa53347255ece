/* SPDX-License-Identifier: MIT
 *
 * The output of a language model, and back: final norm, logits or clusters of words, cap, loss. */
#include "lm.h"
#include "variants/parts/linear.h"
#include "variants/parts/norm.h"

int lm_block(const struct lm *m, int rows)
{
    return m->block && !m->drive->heads && lm_has_logits(m) ? min_int(m->block, rows) : rows;
}

void lm_scale(const struct lm *m, const struct engine *g, float *x, int rows)
{
    const float by = m->c.logit_scale;
    const size_t n = by == 1 ? 0 : (size_t)rows * (size_t)m->c.D;

#pragma omp parallel for simd num_threads(team_for(g->threads, n))
    for (size_t i = 0; i < n; i++)
        x[i] *= by;
}

/* m->h, what the output reads */
static void finish(struct lm *m, const struct engine *g, const float *h, int rows)
{
    const struct config *c = &m->c;

    if (c->final_ln)
        norm_apply(g, c, &m->params.v[m->at_final_ln], m->h, h, NULL, rows);
    else if (h != m->h)
        memcpy(m->h, h, sizeof(float) * (size_t)rows * (size_t)c->D);
    lm_scale(m, g, m->h, rows);
    dropout(&m->drop, DROP_FINAL, m->h, (size_t)rows * (size_t)c->D, g->threads);
}

static void plain_logits(struct lm *m, const struct engine *g, int rows)
{
    const struct config *c = &m->c;
    const struct param *W = &m->params.v[c->tied ? m->at_embed : m->at_out];

    linear_apply(g, W, m->logits, m->h, rows);
    if (c->out_bias)
        linear_epilogue(g, (struct act){.y = m->logits, .bias = m->params.v[m->at_out_bias].data},
                        m->logits, rows, c->V);
}

bool lm_has_logits(const struct lm *m) { return !has_clusters(&m->c); }

void lm_all(struct lm *m, const struct engine *g, int rows)
{
    if (!lm_has_logits(m))
        adaptive_all(&m->words, g, m->h, m->logits, rows);
}

void lm_output(struct lm *m, const struct engine *g, const float *h, int rows)
{
    finish(m, g, h, rows);
    if (lm_has_logits(m))
        plain_logits(m, g, rows);
    else
        lm_all(m, g, rows);
}

/* cap tanh(logits / cap) */
static void cap_logits(struct lm *m, const struct engine *g, int rows)
{
    const size_t n = (size_t)rows * (size_t)m->c.V;
    const float cap = m->c.logit_cap;

#pragma omp parallel for num_threads(g->threads)
    for (size_t i = 0; i < n; i++)
        m->logits[i] = cap * tanhf(m->logits[i] / cap);
}

static void score_block(struct lm *m, const struct engine *g, const float *h, const int32_t *target,
                        float *nll, int rows)
{
    finish(m, g, h, rows);
    if (!lm_has_logits(m)) {
        if (target)
            adaptive_nll(&m->words, g, m->h, target, nll, rows);
        return;
    }
    plain_logits(m, g, rows);
    if (m->c.logit_cap != 0)
        cap_logits(m, g, rows);
    if (target)
        nll_of_rows(g, nll, m->logits, target, rows, m->c.V);
}

/* h may be m->h: a block is over when the next is written to where it was. */
void lm_score(struct lm *m, const struct engine *g, const float *h, const int32_t *target,
              float *nll, int rows)
{
    for (int at = 0; at < rows; at += lm_block(m, rows)) {
        const int n = min_int(lm_block(m, rows), rows - at);
        score_block(m, g, h + (ptrdiff_t)at * m->c.D, target ? target + at : NULL,
                    nll ? nll + at : NULL, n);
        if (m->see_logits && lm_has_logits(m))
            m->see_logits(m->see_arg, m->logits, at, n);
    }
}

/* ---- backward ------------------------------------------------------------------------------ */

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
    if (m->d_logits)
        memcpy(d_logits, m->d_logits, sizeof(float) * (size_t)rows * (size_t)c->V);
    else
        nll_of_rows_grad(g, d_logits, target, rows, c->V, (float)(share / rows), m->z_loss);
    if (capped)
        through_cap(d_logits, capped, c->logit_cap, (size_t)rows * (size_t)c->V, g->threads);
    if (c->out_bias)
        linear_bias_grad(g, &m->params.v[m->at_out_bias], d_logits, rows);
    linear_backward(g, W, NULL, d, d_logits, m->h, rows, 0);
}

void lm_output_backward(struct lm *m, const struct engine *g, const int32_t *target,
                        const float *in, float *d, double share, int rows)
{
    const struct config *c = &m->c;

    if (lm_has_logits(m))
        logits_backward(m, g, target, d, share, rows);
    else
        adaptive_out_grad(&m->words, g, m->h, d, share, m->z_loss, rows);
    dropout(&m->drop, DROP_FINAL, d, (size_t)rows * (size_t)c->D, g->threads);
    lm_scale(m, g, d, rows);
    if (c->final_ln)
        norm_backward(g, c, &m->params.v[m->at_final_ln], d, d, in, m->sublayers.work[0].stats,
                      rows, rows);
}

/* ---- cost ---------------------------------------------------------------------------------- */

double lm_unread_bytes(const struct lm *m, int rows)
{
    const struct config *const c = &m->c;
    const double own = m->drive->unread ? m->drive->unread(m) : 0;

    if (has_clusters(c))
        return own + adaptive_unread(&m->words, rows);
    const enum elem elem = m->params.v[m->at_embed].elem;
    return own + (c->tied ? 0 : (double)elem_row_bytes(elem, c->D) * max_int(0, c->V - rows));
}

double lm_words_flop(const struct lm *m, int rows)
{
    return has_clusters(&m->c) ? adaptive_in_flop(&m->words) + adaptive_out_flop(&m->words)
                               : 2.0 * rows * m->c.D * m->c.V;
}

double lm_row_flop(const struct lm *m)
{
    return has_clusters(&m->c) ? adaptive_row_flop(&m->words) : 2.0 * m->c.D * m->c.V;
}
