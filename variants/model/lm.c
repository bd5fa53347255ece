/* SPDX-License-Identifier: MIT
 *
 * The language model:
 *
 *   h^0 = emb_scale * E[tokens]  (+ absolute positions)
 *   h^{i+1} = sub-layer_i(h^i, memory^i)
 *   h^n <- sum over layers: softmax(w)_l h^l                with transparent (blend.h)
 *   logits = (final_ln ? N(h^n) : h^n) W_out^T + b_out      W_out = E when tied
 *   logits <- cap tanh(logits / cap)                        with logit_cap (Gemma 2) */
#include "lm.h"
#include "variants/parts/norm.h"

#include <math.h>
#include <string.h>

/* ---- declaration -------------------------------------------------------------------------- */

enum status lm_init(struct lm *m, const struct config *c, struct err *e)
{
    const enum status st = config_check(c, e);

    *m = (struct lm){
        .c = *c, .at_final_ln = -1, .at_out = -1, .at_out_bias = -1, .at_halt = -1, .at_blend = -1};
    if (st != OK)
        return st;
    struct params *p = &m->params;
    m->at_embed = params_add(p, INIT_EMBED, 0, 2, (const int[]){c->V, c->D}, "%s", "embed.weight");
    m->at_model = p->n;
    sublayers_model_params(c, p);
    if (c->final_ln) {
        m->at_final_ln = p->n;
        norm_params(c, "", "final_ln", p);
    }
    if (!c->tied)
        m->at_out = params_matrix(p, c->V, c->D, "out.", "weight");
    if (c->out_bias)
        m->at_out_bias = params_vector(p, INIT_ZERO, 0, c->V, "out.", "bias");
    m->at_halt = depth_params(c, p);
    m->at_blend = blend_params(c, p);

    const enum status listed = sublayers_init(&m->sublayers, &m->c, p, m->at_model, e);
    if (listed != OK)
        lm_free(m);
    return listed;
}

enum status lm_bind(struct lm *m, const struct engine *g, enum mem_kind kind, struct extent max,
                    struct arena *a, struct err *e)
{
    const size_t rows = (size_t)max.B * (size_t)max.L;

    m->kind = kind;
    m->max = max;
    m->position = 0;
    params_place(&m->params, a);
    params_place_packed(&m->params, g, max.B * max.L, a);
    const enum status st = sublayers_bind(&m->sublayers, g, &m->params, kind, max, a, e);
    if (st != OK)
        return st;
    if (m->c.steps)
        depth_bind(&m->depth, &m->c, &m->sublayers, &m->params, m->at_halt, a);
    if (m->c.transparent)
        blend_bind(&m->blend, &m->c, &m->sublayers, &m->params, m->at_blend, a);
    if (m->c.exit)
        exit_bind(&m->exit, &m->c, &m->sublayers, a);
    m->h = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)m->c.D);
    m->logits = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)m->c.V);
    return OK;
}

static size_t n_pos_encoding(const struct config *c, struct extent max)
{
    return c->pos->n_pos_encoding ? c->pos->n_pos_encoding(c, max.M + max.L) : 0;
}

/* The positions that are added to the embedding count on from what states have absorbed. */
static bool counts_on(const struct lm *m)
{
    return m->kind == MEM_STATE && m->c.pos->embed && m->c.pos->pos_encoding;
}

static void encode_positions(struct lm *m)
{
    const struct config *c = &m->c;
    const bool on = counts_on(m);

    if (c->pos->pos_encoding)
        c->pos->pos_encoding(c, on ? m->position : 0, m->max.L + (on ? 0 : m->max.M),
                             m->sublayers.pos_encoding);
}

void lm_build_tables(struct lm *m, const struct engine *g)
{
    const struct config *c = &m->c;

    encode_positions(m);
    if (c->pos->build_tables) /* encodings added to the embedding are dropped with it */
        dropout(&m->drop, DROP_POSITIONS, m->sublayers.pos_encoding, n_pos_encoding(c, m->max),
                g->threads);
    params_pack(&m->params, g);
    sublayers_build_tables(&m->sublayers, g);
    if (c->steps)
        depth_build_tables(&m->depth);
}

void lm_free(struct lm *m)
{
    sublayers_free(&m->sublayers);
    params_free(&m->params);
    *m = (struct lm){0};
}

/* ---- forward ------------------------------------------------------------------------------ */

static void embed(const struct lm *m, float *h, const int32_t *tokens, int B, int L)
{
    const struct config *c = &m->c;
    const float *E = m->params.v[m->at_embed].data; /* [V,D] */

    for (ptrdiff_t t = 0; t < (ptrdiff_t)B * L; t++) {
        CHECK(tokens[t] >= 0 && tokens[t] < c->V);
        for (int e = 0; e < c->D; e++)
            h[t * c->D + e] = c->emb_scale * E[(ptrdiff_t)tokens[t] * c->D + e];
    }
    if (c->pos->embed)
        c->pos->embed(c, &m->params.v[m->at_model], m->sublayers.pos_encoding, h, B, L);
}

/* Move the last n of every sequence's L rows to the front: h becomes [B,n,D]. */
static void keep_last(float *h, int B, int L, int n, int D)
{
    for (int b = 0; n < L && b < B; b++)
        memmove(h + (ptrdiff_t)b * n * D, h + ((ptrdiff_t)b * L + L - n) * D,
                sizeof(float) * (size_t)n * (size_t)D);
}

void lm_output(struct lm *m, const struct engine *g, const float *h, int rows)
{
    const struct config *c = &m->c;
    const struct param *W = &m->params.v[c->tied ? m->at_embed : m->at_out];

    if (c->final_ln)
        norm_apply(g, c, &m->params.v[m->at_final_ln], m->h, h, NULL, rows);
    else if (h != m->h)
        memcpy(m->h, h, sizeof(float) * (size_t)rows * (size_t)c->D);
    dropout(&m->drop, DROP_FINAL, m->h, (size_t)rows * (size_t)c->D, g->threads);
    g->ops.gemm(&(struct gemm){.tb = true,
                               .m = rows,
                               .n = c->V,
                               .k = c->D,
                               .alpha = 1,
                               .a = m->h,
                               .lda = c->D,
                               .b = W->data,
                               .ldb = c->D,
                               .c = m->logits,
                               .ldc = c->V,
                               .threads = g->threads});
    if (c->out_bias)
        g->ops.act(&(struct act){.y = m->logits,
                                 .x = m->logits,
                                 .bias = m->params.v[m->at_out_bias].data,
                                 .rows = rows,
                                 .n = c->V,
                                 .threads = g->threads});
}

static const float *logits_of(void *model, const struct engine *g, const float *h, int n)
{
    struct lm *const m = model;

    lm_output(m, g, h, n);
    return m->logits;
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

void lm_forward(struct lm *m, const struct engine *g, const int32_t *tokens, int B, int L,
                int n_scored, const int32_t *target, float *nll)
{
    CHECK(B <= m->max.B && L <= m->max.L && n_scored <= L);
    float *last = m->final_in ? m->final_in : m->h;
    float *const first = m->c.steps         ? depth_input(&m->depth)
                         : m->c.transparent ? blend_input(&m->blend)
                         : m->c.exit        ? exit_input(&m->exit)
                                            : sublayers_input(&m->sublayers, last);
    embed(m, first, tokens, B, L);
    dropout(&m->drop, DROP_EMBEDDING, first, (size_t)(B * L) * (size_t)m->c.D, g->threads);
    CHECK(m->drop.p == 0 || (m->sublayers.kept && n_scored == L));
    m->sublayers.drop = m->drop;
    m->sublayers.tokens = tokens;
    if (m->c.steps)
        depth_forward(&m->depth, g, last, B, L);
    else if (m->c.transparent)
        blend_forward(&m->blend, g, last, B, L);
    else if (m->c.exit)
        exit_forward(&m->exit, g, (struct exit_head){logits_of, m}, last, B, L);
    else
        sublayers_forward(&m->sublayers, g, last, first, B, L);
    m->n_scored = n_scored;
    keep_last(last, B, L, n_scored, m->c.D);
    lm_output(m, g, last, B * n_scored);
    if (m->c.logit_cap != 0)
        cap_logits(m, g, B * n_scored);
    if (target)
        g->ops.nll(&(struct nll_op){.nll = nll,
                                    .logits = m->logits,
                                    .target = target,
                                    .rows = B * n_scored,
                                    .n = m->c.V,
                                    .threads = g->threads});
}

/* ---- memory ------------------------------------------------------------------------------- */

void lm_seek(struct lm *m, int64_t position)
{
    if (m->kind != MEM_STATE || m->position == position)
        return;
    m->position = position;
    if (counts_on(m))
        encode_positions(m);
}

void lm_commit(struct lm *m, int L)
{
    sublayers_commit(&m->sublayers, L);
    lm_seek(m, m->position + L);
}

void lm_forget(struct lm *m)
{
    sublayers_forget(&m->sublayers);
    lm_seek(m, 0);
}

double lm_flop(const struct lm *m, int B, int L, int M, int n_scored)
{
    const double layers = m->c.steps  ? depth_flop(&m->depth, B, L, M)
                          : m->c.exit ? exit_flop(&m->exit, B, L, M)
                                      : sublayers_flop(&m->sublayers, B, L, M);

    const double blend = m->c.transparent ? blend_flop(&m->blend, B, L) : 0;

    return 2.0 * B * n_scored * m->c.D * m->c.V + layers + blend;
}
