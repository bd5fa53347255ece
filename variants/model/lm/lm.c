/* SPDX-License-Identifier: MIT
 *
 * The language model:
 *
 *   h^0     = emb_scale * E[tokens]  (+ absolute positions)
 *   h^{i+1} = sub-layer_i(h^i, memory^i)                    or as the model's drive runs them
 *   logits  = logit_scale (final_ln ? N(h^n) : h^n) W_out^T + b_out
 *   W_out   = E when tied
 *   logits <- cap tanh(logits / cap)                        with logit_cap (Gemma 2) */
#include "lm.h"
#include "variants/parts/mem.h"
#include "variants/parts/norm.h"

/* ---- declaration -------------------------------------------------------------------------- */

enum status lm_init(struct lm *m, const struct config *c, struct err *e)
{
    const enum status st = config_check(c, e);

    *m = (struct lm){
        .c = *c, .at_final_ln = -1, .at_out = -1, .at_out_bias = -1, .drive = &drive_plain};
    TRY(st);
    m->drive = drive_of(c);
    m->drive_data = m->drive->size ? need_room(1, m->drive->size) : NULL;
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
    m->at_drive = p->n;
    if (m->drive->params)
        m->drive->params(m);
    sublayers_init(&m->sublayers, &m->c, p, m->at_model);
    return OK;
}

enum status lm_bind(struct lm *m, const struct engine *g, enum mem_kind kind, struct extent max,
                    struct arena *a, struct err *e)
{
    const size_t rows = (size_t)max.B * (size_t)max.L;
    const int longest = m->c.enc_layers ? max_int(max.L, max.M) : max.L; /* text */

    m->kind = kind;
    m->max = max;
    m->position = 0;
    params_place(&m->params, a);
    params_place_packed(&m->params, g, max.B * longest, a);
    const struct extent at_once = m->drive->step ? m->drive->step(m) : max;
    TRY(sublayers_bind(&m->sublayers, g, &m->params, kind, at_once, a, e));
    if (m->drive->bind)
        TRY(m->drive->bind(m, g, a, e));
    m->h = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)m->c.D);
    if (has_clusters(&m->c))
        adaptive_bind(&m->words, &m->c, &m->params, (size_t)max.B * (size_t)longest, a);
    const size_t block = (size_t)lm_block(m, max.B * max.L);
    m->logits = lm_has_logits(m) || m->all_logits || m->drive->heads
                    ? arena_f32(a, PART_ACTIVATIONS, block * (size_t)m->c.V)
                    : NULL;
    return OK;
}

void lm_encode(struct lm *m, const struct sublayers *s, int64_t first, int n, int trained)
{
    const struct config *const c = s->at->c;

    if (c->pos->encode)
        c->pos->encode(c, &m->params.v[s->at_model], trained, s->pos_encoding);
    if (c->pos->pos_encoding)
        c->pos->pos_encoding(c, first, n, s->pos_encoding);
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

/* Does the first token have position 0, and the last M + L - 1 at most? All are encoded once. */
static bool from_start(const struct lm *m)
{
    return m->kind == MEM_KV && config_mem(&m->c)->cached;
}

/* The positions that are added to the embedding count on from the past that stays, without end. */
static bool counts_on(const struct lm *m)
{
    return carries_past(m) && m->c.pos->embed && m->c.pos->pos_encoding && !from_start(m);
}

/* Those of the next tokens, which begin anew where a segment does, whatever parts of it a call has. */
static void restart_positions(struct lm *m)
{
    const struct config *const c = &m->c;
    const size_t row = c->pos->n_pos_encoding(c, 1);
    int n;

    for (int done = 0; done < m->max.L; done += n) {
        const int at = (int)((m->position + done) % c->max_seq);
        n = min_int(m->max.L - done, c->max_seq - at);
        c->pos->pos_encoding(c, at, n, m->sublayers.pos_encoding + (size_t)done * row);
    }
}

static void encode_positions(struct lm *m)
{
    const struct config *const c = &m->c;
    const bool on = counts_on(m);

    if (on && c->pos_restart) {
        restart_positions(m);
        return;
    }
    lm_encode(m, &m->sublayers, on ? m->position : 0, m->max.L + (on ? 0 : m->max.M),
              m->max.L + m->max.M);
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
    if (m->drive->build_tables)
        m->drive->build_tables(m, g);
}

void lm_free(struct lm *m)
{
    if (m->drive_data && m->drive->free)
        m->drive->free(m);
    free(m->drive_data);
    sublayers_free(&m->sublayers);
    params_free(&m->params);
    *m = (struct lm){0};
}

/* ---- forward ------------------------------------------------------------------------------ */

void lm_embed(struct lm *m, const struct engine *g, const struct sublayers *s, float *h,
              const int32_t *tokens, int B, int L)
{
    const struct config *c = &m->c;
    const int64_t first = from_start(m) ? m->position : 0;

    CHECK(first <= m->max.M);
    for (ptrdiff_t t = 0; t < (ptrdiff_t)B * L; t++)
        CHECK(tokens[t] >= 0 && tokens[t] < c->V);
    if (c->pos->from_tokens) {
        c->pos->from_tokens(c, &m->params.v[m->at_embed], tokens, first, h, B, L, g->threads);
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
        c->pos->embed(c, &m->params.v[s->at_model], s->pos_encoding, first, h, B, L);
}

/* Move the last n of every sequence's L rows to the front: h becomes [B,n,D]. */
static void keep_last(float *h, int B, int L, int n, int D)
{
    for (int b = 0; n < L && b < B; b++)
        memmove(h + (ptrdiff_t)b * n * D, h + ((ptrdiff_t)b * L + L - n) * D,
                sizeof(float) * (size_t)n * (size_t)D);
}

int lm_rows(const struct lm *m, int B, int L) { return B * (m->picked ? m->n_picked : L); }

const float *lm_pick(const struct lm *m, float *to, const float *h, int B, int L)
{
    const ptrdiff_t D = m->c.D;

    if (!m->picked)
        return h;
    for (int b = 0, at = 0; b < B; b++)
        for (int i = 0; i < m->n_picked; i++, at++)
            memmove(to + at * D, h + ((ptrdiff_t)b * L + m->picked[at]) * D,
                    sizeof(float) * (size_t)D);
    return to;
}

/* From the end: no row is written before it is read. */
void lm_unpick(const struct lm *m, float *d, int B, int L)
{
    const ptrdiff_t D = m->c.D;
    int at = lm_rows(m, B, L) - 1;

    for (int row = B * L - 1; m->picked && row >= 0; row--) {
        const bool is = at >= 0 && at / m->n_picked == row / L && m->picked[at] == row % L;
        if (is)
            memmove(d + row * D, d + at-- * D, sizeof(float) * (size_t)D);
        else
            memset(d + row * D, 0, sizeof(float) * (size_t)D);
    }
}

void lm_states(struct lm *m, const struct engine *g, const int32_t *tokens, float *last, int B,
               int L)
{
    float *const first = m->drive->input(m, last);

    lm_embed(m, g, &m->sublayers, first, tokens, B, L);
    dropout(&m->drop, DROP_EMBEDDING, first, (size_t)(B * L) * (size_t)m->c.D, g->threads);
    m->sublayers.drop = m->drop;
    m->sublayers.tokens = tokens;
    m->drive->forward(m, g, last, B, L);
}

const float *lm_hidden(struct lm *m, const struct engine *g, const int32_t *tokens, int B, int L,
                       int n_scored)
{
    CHECK(B <= m->max.B && L <= m->max.L && n_scored <= L);
    CHECK(m->drop.p == 0 || (m->sublayers.kept && n_scored == L));
    float *last = m->final_in ? m->final_in : m->h;

    if (m->drive->enter)
        m->drive->enter(m, tokens, B, L);
    lm_states(m, g, tokens, last, B, L);
    m->n_scored = n_scored;
    keep_last(last, B, L, n_scored, m->c.D);
    CHECK(!m->picked || n_scored == L);
    return lm_pick(m, last, last, B, n_scored);
}

void lm_forward(struct lm *m, const struct engine *g, const int32_t *tokens, int B, int L,
                int n_scored, const int32_t *target, float *nll)
{
    const float *const h = lm_hidden(m, g, tokens, B, L, n_scored);

    lm_score(m, g, h, target, nll, lm_rows(m, B, n_scored));
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
    if (m->drive->commit)
        m->drive->commit(m, L);
    sublayers_commit(&m->sublayers, L);
    lm_seek(m, m->position + L);
}

void lm_forget(struct lm *m)
{
    sublayers_forget(&m->sublayers);
    if (m->drive->forget)
        m->drive->forget(m);
    lm_seek(m, 0);
}

enum status lm_zeros(struct lm *m, const struct engine *g, int B, struct err *e)
{
    struct sublayers *const s = &m->sublayers;

    if ((m->kind != MEM_HIDDEN && m->kind != MEM_KV) || m->drive->memory ||
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

/* Does it remember what attention to the newest M rows does not: states, rows of convolutions? */
static bool remembers_more(const struct sublayer *s, const struct lm *m)
{
    const int M = m->max.M, rows = s->kind->keeps ? s->kind->keeps(s, m->kind, M) : 0;
    struct carried one;

    return (s->kind->carries && s->kind->carries(s, 0, &one)) || rows > (s->kind->attends ? M : 0);
}

bool lm_reaches_all(const struct lm *m)
{
    const bool longer =
        m->c.recur == RECUR_SAME || m->c.stream_sinks > 0 || compressive_of(&m->c)->rows > 0;
    bool more = m->drive->memory || (longer && m->max.M > 0);

    for (int i = 0; i < m->sublayers.n && !more; i++)
        more = remembers_more(&m->sublayers.at[i], m);
    return more && carries_past(m);
}

size_t lm_carried(const struct lm *m, int B)
{
    return m->drive->carried ? m->drive->carried(m, B) : 0;
}

struct layers_run lm_layers_run(const struct lm *m)
{
    return m->drive->layers_run ? m->drive->layers_run(m) : (struct layers_run){0};
}

void lm_impl(const struct lm *m, bool backward, char text[IMPL_TEXT])
{
    if (m->drive->layers)
        sublayers_impl(m->drive->layers(m), backward, text);
    sublayers_impl(&m->sublayers, backward, text);
}

bool lm_result(const struct lm *m, int i, struct drive_result *out)
{
    return m->drive->result && m->drive->result(m, i, out);
}

double lm_flop(const struct lm *m, int B, int L, int M, int n_scored)
{
    return lm_words_flop(m, B * n_scored) + m->drive->flop(m, B, L, M);
}
