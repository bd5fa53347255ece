/* SPDX-License-Identifier: MIT
 *
 * The language model:
 *
 *   h^0     = emb_scale * E[tokens]  (+ absolute positions)
 *   h^{i+1} = sub-layer_i(h^i, memory^i)
 *   h^n <- sum over layers: softmax(w)_l h^l                with transparent (blend.h)
 *   logits  = (final_ln ? N(h^n) : h^n) W_out^T + b_out
 *   W_out   = E when tied
 *   logits <- cap tanh(logits / cap)                        with logit_cap (Gemma 2) */
#include "lm.h"
#include "variants/parts/linear.h"
#include "variants/parts/norm.h"

#include <math.h>
#include <string.h>

/* ---- declaration -------------------------------------------------------------------------- */

enum status lm_init(struct lm *m, const struct config *c, struct err *e)
{
    const enum status st = config_check(c, e);

    *m = (struct lm){.c = *c,
                     .at_final_ln = -1,
                     .at_out = -1,
                     .at_out_bias = -1,
                     .at_halt = -1,
                     .at_blend = -1,
                     .at_feedback = -1,
                     .at_slots = -1};
    if (st != OK)
        return st;
    struct params *p = &m->params;
    m->at_embed = p->n;
    if (has_clusters(c)) {
        adaptive_embed_params(&m->words, &m->c, p);
        m->at_embed = -1;
    } else if (c->pos->word_params)
        c->pos->word_params(c, p);
    else
        params_narrows(
            p, params_add(p, INIT_EMBED, 0, 2, (const int[]){c->V, c->D}, "%s", "embed.weight"));
    m->at_model = p->n;
    sublayers_model_params(c, p);
    if (c->final_ln) {
        m->at_final_ln = p->n;
        norm_params(c, "", "final_ln", p);
    }
    if (has_clusters(c))
        adaptive_out_params(&m->words, p);
    else if (!c->tied) {
        m->at_out = params_map(p, c->V, c->D, "out.", "weight");
        p->v[m->at_out].group = PARAM_OUTPUT;
    }
    if (c->out_bias && !has_clusters(c))
        m->at_out_bias = params_vector(p, INIT_ZERO, 0, c->V, "out.", "bias");
    m->at_halt = depth_params(c, p);
    m->at_blend = blend_params(c, p);
    m->at_feedback = feedback_params(c, p);
    m->at_slots = slots_params(c, p);

    const enum status listed = sublayers_init(&m->sublayers, &m->c, p, m->at_model, e);
    if (listed != OK)
        lm_free(m);
    return listed;
}

/* Rows of logits at once: what stops early, and clusters of words, have all. */
static int block_of(const struct lm *m, int rows)
{
    return m->block && !m->c.exit && lm_has_logits(m) ? min_int(m->block, rows) : rows;
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
    const struct extent at_once = m->c.feedback.on ? feedback_step(max) : max;
    enum status st = sublayers_bind(&m->sublayers, g, &m->params, kind, at_once, a, e);
    if (st == OK && m->c.feedback.on)
        st = feedback_bind(&m->feedback, &m->c, &m->sublayers, &m->params, m->at_feedback, max, a,
                           e);
    if (st != OK)
        return st;
    if (m->c.steps)
        depth_bind(&m->depth, &m->c, &m->sublayers, &m->params, m->at_halt, a);
    if (m->c.transparent)
        blend_bind(&m->blend, &m->c, &m->sublayers, &m->params, m->at_blend, a);
    if (m->c.exit)
        exit_bind(&m->exit, &m->c, &m->sublayers, a);
    if (m->c.slots.n)
        slots_bind(&m->slots, &m->c, &m->sublayers, &m->params, m->at_slots, max, a);
    m->h = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)m->c.D);
    if (has_clusters(&m->c))
        adaptive_bind(&m->words, &m->c, &m->params, rows, a);
    const size_t block = (size_t)block_of(m, max.B * max.L);
    m->logits = lm_has_logits(m) || m->all_logits || m->c.exit
                    ? arena_f32(a, PART_ACTIVATIONS, block * (size_t)m->c.V)
                    : NULL;
    return OK;
}

static size_t n_pos_encoding(const struct config *c, struct extent max)
{
    return c->pos->n_pos_encoding ? c->pos->n_pos_encoding(c, max.M + max.L) : 0;
}

/* Does a past stay from segment to segment? */
static bool carries_past(const struct lm *m)
{
    return m->kind == MEM_STATE || m->kind == MEM_HIDDEN || m->kind == MEM_KV;
}

/* The positions that are added to the embedding count on from the past that stays. */
static bool counts_on(const struct lm *m)
{
    return carries_past(m) && m->c.pos->embed && m->c.pos->pos_encoding;
}

static void encode_positions(struct lm *m)
{
    const struct config *c = &m->c;
    const bool on = counts_on(m);

    if (c->pos->encode)
        c->pos->encode(c, &m->params.v[m->at_model], m->max.L + m->max.M,
                       m->sublayers.pos_encoding);
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
    feedback_free(&m->feedback);
    slots_free(&m->slots);
    params_free(&m->params);
    *m = (struct lm){0};
}

/* ---- forward ------------------------------------------------------------------------------ */

static void embed(struct lm *m, const struct engine *g, float *h, const int32_t *tokens, int B,
                  int L)
{
    const struct config *c = &m->c;

    for (ptrdiff_t t = 0; t < (ptrdiff_t)B * L; t++)
        CHECK(tokens[t] >= 0 && tokens[t] < c->V);
    if (c->pos->from_tokens) {
        c->pos->from_tokens(c, &m->params.v[m->at_embed], tokens, h, B, L, g->threads);
        return;
    }
    if (has_clusters(c))
        adaptive_embed(&m->words, g, tokens, h, B * L);
    for (ptrdiff_t t = 0; !has_clusters(c) && t < (ptrdiff_t)B * L; t++) {
        param_row(&m->params.v[m->at_embed], tokens[t], h + t * c->D);
        for (int e = 0; e < c->D; e++)
            h[t * c->D + e] *= c->emb_scale;
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

/* m->h, what the output reads */
static void finish(struct lm *m, const struct engine *g, const float *h, int rows)
{
    const struct config *c = &m->c;

    if (c->final_ln)
        norm_apply(g, c, &m->params.v[m->at_final_ln], m->h, h, NULL, rows);
    else if (h != m->h)
        memcpy(m->h, h, sizeof(float) * (size_t)rows * (size_t)c->D);
    dropout(&m->drop, DROP_FINAL, m->h, (size_t)rows * (size_t)c->D, g->threads);
}

static void plain_logits(struct lm *m, const struct engine *g, int rows)
{
    const struct config *c = &m->c;
    const struct param *W = &m->params.v[c->tied ? m->at_embed : m->at_out];
    const struct gemm p = linear_product(g, W, m->logits, m->h, rows);

    g->ops.gemm(&p);
    if (c->out_bias)
        g->ops.act(&(struct act){.y = m->logits,
                                 .x = m->logits,
                                 .bias = m->params.v[m->at_out_bias].data,
                                 .rows = rows,
                                 .n = c->V,
                                 .threads = g->threads});
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

/* Slots are written from what the output reads. */
static void write_slots(struct lm *m, const struct engine *g, const float *last, int B, int L)
{
    if (m->c.final_ln)
        norm_apply(g, &m->c, &m->params.v[m->at_final_ln], m->slots.h, last, NULL, B * L);
    else
        memcpy(m->slots.h, last, sizeof(float) * (size_t)(B * L) * (size_t)m->c.D);
    slots_write(&m->slots, g, B, L);
}

void lm_states(struct lm *m, const struct engine *g, const int32_t *tokens, float *last, int B,
               int L)
{
    float *const first = m->c.steps         ? depth_input(&m->depth)
                         : m->c.transparent ? blend_input(&m->blend)
                         : m->c.exit        ? exit_input(&m->exit)
                         : m->c.feedback.on ? feedback_input(&m->feedback)
                                            : sublayers_input(&m->sublayers, last);
    embed(m, g, first, tokens, B, L);
    dropout(&m->drop, DROP_EMBEDDING, first, (size_t)(B * L) * (size_t)m->c.D, g->threads);
    m->sublayers.drop = m->drop;
    m->sublayers.tokens = tokens;
    if (m->c.steps)
        depth_forward(&m->depth, g, last, B, L);
    else if (m->c.transparent)
        blend_forward(&m->blend, g, last, B, L);
    else if (m->c.exit)
        exit_forward(&m->exit, g, (struct exit_head){logits_of, m}, last, B, L);
    else if (m->c.feedback.on)
        feedback_forward(&m->feedback, g, last, B, L);
    else
        sublayers_forward(&m->sublayers, g, last, first, B, L);
    if (m->c.slots.n)
        write_slots(m, g, last, B, L);
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
        g->ops.nll(&(struct nll_op){.nll = nll,
                                    .logits = m->logits,
                                    .target = target,
                                    .rows = rows,
                                    .n = m->c.V,
                                    .threads = g->threads});
}

/* h may be m->h: a block is over when the next is written to where it was. */
void lm_score(struct lm *m, const struct engine *g, const float *h, const int32_t *target,
              float *nll, int rows)
{
    for (int at = 0; at < rows; at += block_of(m, rows)) {
        const int n = min_int(block_of(m, rows), rows - at);
        score_block(m, g, h + (ptrdiff_t)at * m->c.D, target ? target + at : NULL,
                    nll ? nll + at : NULL, n);
    }
}

void lm_forward(struct lm *m, const struct engine *g, const int32_t *tokens, int B, int L,
                int n_scored, const int32_t *target, float *nll)
{
    CHECK(B <= m->max.B && L <= m->max.L && n_scored <= L);
    CHECK(m->drop.p == 0 || (m->sublayers.kept && n_scored == L));
    float *last = m->final_in ? m->final_in : m->h;

    if (m->c.slots.n)
        slots_enter(&m->slots, tokens, B, L);
    lm_states(m, g, tokens, last, B, L);
    m->n_scored = n_scored;
    keep_last(last, B, L, n_scored, m->c.D);
    lm_score(m, g, last, target, nll, B * n_scored);
}

/* ---- memory ------------------------------------------------------------------------------- */

void lm_seek(struct lm *m, int64_t position)
{
    if (!carries_past(m) || m->position == position)
        return;
    m->position = position;
    if (counts_on(m))
        encode_positions(m);
}

void lm_commit(struct lm *m, int L)
{
    if (m->c.slots.n) /* first: it looks at the memory that this segment had */
        slots_commit(&m->slots, &m->drop, L);
    sublayers_commit(&m->sublayers, L);
    lm_seek(m, m->position + L);
}

void lm_forget(struct lm *m)
{
    sublayers_forget(&m->sublayers);
    if (m->c.slots.n)
        slots_forget(&m->slots);
    lm_seek(m, 0);
}

enum status lm_zeros(struct lm *m, const struct engine *g, int B, struct err *e)
{
    struct sublayers *const s = &m->sublayers;

    if ((m->kind != MEM_HIDDEN && m->kind != MEM_KV) || m->c.feedback.on || m->c.slots.n ||
        config_mem(&m->c)->compressed)
        return fail(e, E_UNSUPPORTED,
                    "%s: a memory that begins with zeros is one of rows, and has one  -> "
                    "--mem-start empty, or --mem 1 or more",
                    m->c.variant->name);
    lm_forget(m);
    memset(m->h, 0, sizeof(float) * (size_t)(B * m->max.L) * (size_t)m->c.D);
    for (int left = m->max.M; left > 0; left -= m->max.L)
        for (int i = 0; i < s->n; i++)
            sublayer_remember(g, &s->at[i], &s->work[i], m->h, B, min_int(left, m->max.L));
    return OK;
}

double lm_unread_bytes(const struct lm *m, int rows)
{
    const struct config *const c = &m->c;

    if (has_clusters(c))
        return adaptive_unread(&m->words, rows);
    const enum elem elem = m->params.v[m->at_embed].elem;
    return c->tied ? 0 : (double)elem_row_bytes(elem, c->D) * max_int(0, c->V - rows);
}

/* Of the embedding and of the output of `rows` rows. */
static double words_flop(const struct lm *m, int rows)
{
    return has_clusters(&m->c) ? adaptive_in_flop(&m->words) + adaptive_out_flop(&m->words)
                               : 2.0 * rows * m->c.D * m->c.V;
}

double lm_row_flop(const struct lm *m)
{
    return has_clusters(&m->c) ? adaptive_row_flop(&m->words) : 2.0 * m->c.D * m->c.V;
}

size_t lm_carried(const struct lm *m, int B)
{
    return (size_t)B * (size_t)m->c.slots.n * (size_t)m->c.D;
}

double lm_layers_run(const struct lm *m) { return m->c.exit ? exit_layers(&m->exit) : 0; }

double lm_flop(const struct lm *m, int B, int L, int M, int n_scored)
{
    const double layers = m->c.steps  ? depth_flop(&m->depth, B, L, M)
                          : m->c.exit ? exit_flop(&m->exit, B, L, M)
                                      : sublayers_flop(&m->sublayers, B, L, M);

    const double blend = m->c.transparent ? blend_flop(&m->blend, B, L) : 0;

    const double slots = m->c.slots.n ? slots_flop(&m->slots, B, L) : 0;

    const double heads = m->c.exit ? m->exit.heads * lm_row_flop(m) : 0;

    return words_flop(m, B * n_scored) + layers + blend + slots + heads;
}
