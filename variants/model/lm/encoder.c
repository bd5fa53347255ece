/* SPDX-License-Identifier: MIT
 *
 * The encoder, forward and backward: equations in encoder.h. */
#include "encoder.h"
#include "lm.h"
#include "variants/model/config/config_depth.h"
#include "variants/parts/norm.h"

/* ---- declaration --------------------------------------------------------------------------- */

static bool has_encoder(const struct config *c) { return c->enc_layers > 0; }

const struct sublayers *encoder_layers(const struct lm *m)
{
    return m->c.enc_layers ? &((const struct encoder *)m->drive_data)->layers : NULL;
}

/* Its parameters come before the decoder's, whose gradients are complete before its own. */
static void add_params(struct lm *m)
{
    struct encoder *const t = m->drive_data;
    struct params *const p = &m->params;
    const int first = p->n;

    t->c = config_of_encoder(&m->c);
    t->at_norm = t->at_blend = -1;
    sublayers_model_params(&t->c, p);
    if (m->c.final_ln) {
        t->at_norm = p->n;
        norm_params(&t->c, "", "final_ln", p);
    }
    sublayers_init(&t->layers, &t->c, p, first);
    for (int i = first; i < p->n; i++) {
        char name[sizeof(p->v[i].name)];
        snprintf(name, sizeof(name), "encoder.%.50s", p->v[i].name);
        memcpy(p->v[i].name, name, sizeof(name));
    }
    if (m->c.transparent)
        t->at_blend = params_add(p, INIT_ZERO, 0, 2, (const int[]){m->c.N, m->c.enc_layers + 1},
                                 "%s", "transparent.weight");
}

/* ---- binding ------------------------------------------------------------------------------- */

static size_t source(const struct lm *m)
{
    const struct encoder *const t = m->drive_data;

    return (size_t)m->max.B * (size_t)t->S * (size_t)m->c.D;
}

/* Which rows of the source count, for layers s. */
static void see(const struct lm *m, struct sublayers *s)
{
    for (int i = 0; i < s->n; i++)
        s->at[i].reading.seen = m->source_seen;
}

static size_t contexts(const struct lm *m) { return m->c.transparent ? (size_t)m->c.N : 1; }

/* The decoder has no memory: what was bound as its length is the source's. */
static struct extent step(struct lm *m)
{
    struct encoder *const t = m->drive_data;

    t->S = m->max.M;
    CHECK(t->S > 0);
    m->max.M = 0;
    for (int i = 0; i < m->sublayers.n; i++)
        m->sublayers.at[i].reading.S = t->S;
    see(m, &m->sublayers);
    return m->max;
}

/* The state after layer l; the last one if only that is kept. */
static float *state(const struct lm *m, int l)
{
    const struct encoder *const t = m->drive_data;

    return t->states + (m->c.transparent ? (size_t)l * source(m) : 0);
}

static float *sum(const struct lm *m, int j)
{
    const struct encoder *const t = m->drive_data;

    return m->c.transparent ? t->sums + (size_t)j * source(m) : t->states;
}

/* What cross attention of the decoder's layer j reads, [B,S,D]. */
static float *encoder_context(const struct lm *m, int j)
{
    const struct encoder *const t = m->drive_data;

    return t->context ? t->context + (m->c.transparent ? (size_t)j * source(m) : 0) : sum(m, j);
}

static void connect(struct lm *m)
{
    const struct encoder *const t = m->drive_data;
    struct sublayers *const s = &m->sublayers;

    for (int i = 0; i < s->n; i++) {
        struct reading *const r = &s->at[i].reading;
        const size_t at = m->c.transparent ? (size_t)s->at[i].layer * source(m) : 0;
        if (!s->at[i].kind->reads)
            continue;
        r->ctx = t->states ? encoder_context(m, s->at[i].layer) : NULL;
        r->d_ctx = t->d_context ? t->d_context + at : NULL;
    }
}

static enum status bind(struct lm *m, const struct engine *g, struct arena *a, struct err *e)
{
    struct encoder *const t = m->drive_data;
    const size_t n = (size_t)t->c.N + 1, all = contexts(m) * source(m);
    const bool blends = m->c.transparent;

    t->states = arena_f32(a, PART_ACTIVATIONS, (blends ? n : 1) * source(m));
    t->share = blends ? arena_f32(a, PART_SCRATCH, (size_t)m->c.N * n) : NULL;
    t->sums = blends ? arena_f32(a, PART_ACTIVATIONS, all) : NULL;
    t->context = t->at_norm >= 0 ? arena_f32(a, PART_ACTIVATIONS, all) : NULL;
    t->d_context = t->d = NULL;
    connect(m);
    see(m, &t->layers);
    return sublayers_bind(&t->layers, g, &m->params, MEM_NONE, (struct extent){m->max.B, t->S, 0},
                          a, e);
}

static enum status bind_grad(struct lm *m, const struct engine *g, struct arena *a, struct err *e)
{
    struct encoder *const t = m->drive_data;

    t->d_context = arena_f32(a, PART_ACTIVATIONS, contexts(m) * source(m));
    t->d = arena_f32(a, PART_ACTIVATIONS, source(m));
    connect(m);
    return sublayers_bind_grad(&t->layers, g, a, e);
}

static void build_tables(struct lm *m, const struct engine *g)
{
    struct encoder *const t = m->drive_data;
    const struct pos *const pos = t->c.pos;
    struct sublayers *const s = &t->layers;

    lm_encode(m, s, 0, t->S, t->S);
    if (pos->build_tables && pos->n_pos_encoding)
        dropout(&s->drop, DROP_POSITIONS, s->pos_encoding, pos->n_pos_encoding(&t->c, t->S),
                g->threads);
    sublayers_build_tables(s, g);
}

static struct sublayers *layers(const struct lm *m)
{
    struct encoder *const t = m->drive_data;

    return &t->layers;
}

static void free_layers(struct lm *m) { sublayers_free(layers(m)); }

/* ---- forward ------------------------------------------------------------------------------- */

/* Other masks than the decoder's. */
static struct dropout own_drop(const struct lm *m)
{
    struct dropout drop = m->drop;

    drop.seed ^= 0x656e63;
    return drop;
}

static void run_layers(struct lm *m, const struct engine *g, int B)
{
    struct encoder *const t = m->drive_data;
    struct sublayers *const s = &t->layers;
    const size_t n = (size_t)(B * t->S) * (size_t)m->c.D;

    for (int l = 0; l < t->c.N; l++) {
        const int first = sublayers_first(s, l), count = sublayers_first(s, l + 1) - first;
        float *const to = state(m, l + 1), *const x = sublayers_part_input(s, first, count, to);
        if (x != state(m, l))
            memcpy(x, state(m, l), n * sizeof(*x));
        sublayers_part_forward(s, g, first, count, to, x, B, t->S);
    }
}

/* The sums of all layers of the decoder. */
static void blend(struct lm *m, const struct engine *g, int B)
{
    const struct encoder *const t = m->drive_data;
    const int n = t->c.N + 1;
    const size_t rows = (size_t)(B * t->S) * (size_t)m->c.D;

    for (int j = 0; m->c.transparent && j < m->c.N; j++) {
        const float *const w = m->params.v[t->at_blend].data + (ptrdiff_t)j * n;
        float *const share = t->share + (ptrdiff_t)j * n;
        shares_of(w, n, share);
        memset(sum(m, j), 0, rows * sizeof(float));
        for (int l = 0; l < n; l++)
            add_times(sum(m, j), state(m, l), share[l], rows, g->threads);
    }
}

static void encode(struct lm *m, const struct engine *g, int B)
{
    struct encoder *const t = m->drive_data;
    struct sublayers *const s = &t->layers;
    float *const first = state(m, 0);

    s->drop = own_drop(m);
    s->tokens = m->source;
    see(m, s);
    lm_embed(m, g, s, first, m->source, B, t->S);
    dropout(&s->drop, DROP_EMBEDDING, first, (size_t)(B * t->S) * (size_t)m->c.D, g->threads);
    run_layers(m, g, B);
    blend(m, g, B);
    for (int j = 0; t->context && j < (int)contexts(m); j++)
        norm_apply(g, &t->c, &m->params.v[t->at_norm], encoder_context(m, j), sum(m, j), NULL,
                   B * t->S);
}

static void forward(struct lm *m, const struct engine *g, float *out, int B, int L)
{
    struct sublayers *const s = &m->sublayers;

    CHECK(m->source);
    encode(m, g, B);
    see(m, s);
    sublayers_forward(s, g, out, plain_input(m, out), B, L);
}

/* ---- backward ------------------------------------------------------------------------------ */

static void backward(struct lm *m, const struct engine *g, const int32_t *target, int B, int L)
{
    const struct encoder *const t = m->drive_data;

    memset(t->d_context, 0, contexts(m) * source(m) * sizeof(float));
    plain_backward(m, g, target, B, L);
}

/* Through the softmax of the shares of the decoder's layer j. */
static void share_grad(struct lm *m, int j, size_t rows)
{
    const struct encoder *const t = m->drive_data;
    const int n = t->c.N + 1;
    const float *const d = t->d_context + (size_t)j * source(m), *const share = t->share + j * n;
    double d_share[MAX_LAYERS + 1];

    for (int l = 0; l < n; l++)
        d_share[l] = dot_in_order(d, state(m, l), rows);
    shares_grad(share, d_share, n, m->params.v[t->at_blend].grad + (ptrdiff_t)j * n);
}

/* d += what all contexts give state l. */
static void gather(struct lm *m, const struct engine *g, int l, size_t rows)
{
    const struct encoder *const t = m->drive_data;
    const int n = t->c.N + 1;

    if (!m->c.transparent && l == t->c.N)
        add_times(t->d, t->d_context, 1, rows, g->threads);
    for (int j = 0; m->c.transparent && j < m->c.N; j++)
        add_times(t->d, t->d_context + (size_t)j * source(m), t->share[j * n + l], rows,
                  g->threads);
}

/* The decoder's layers have left the gradients of their contexts. */
static void backward_encoder(struct lm *m, const struct engine *g, int B, int L)
{
    struct encoder *const t = m->drive_data;
    struct sublayers *const s = &t->layers;
    const size_t rows = (size_t)(B * t->S) * (size_t)m->c.D;

    for (int j = 0; t->context && j < (int)contexts(m); j++) {
        float *const d = t->d_context + (size_t)j * source(m);
        norm_backward(g, &t->c, &m->params.v[t->at_norm], d, d, sum(m, j), s->work[0].stats,
                      B * t->S, B * t->S);
    }
    for (int j = 0; m->c.transparent && j < m->c.N; j++)
        share_grad(m, j, rows);
    memset(t->d, 0, rows * sizeof(float));
    for (int l = t->c.N; l >= 0; l--) {
        gather(m, g, l, rows);
        if (l > 0)
            layer_backward(s, g, l - 1, t->d, B, t->S);
    }
    dropout(&s->drop, DROP_EMBEDDING, t->d, rows, g->threads);
    lm_embed_grad(m, g, s, t->S, t->d, m->source, B, t->S);
}

/* ---- cost ---------------------------------------------------------------------------------- */

/* Of the sums. */
static double blend_flop(const struct lm *m, int B)
{
    const struct encoder *const t = m->drive_data;

    return m->c.transparent ? 2.0 * B * t->S * m->c.D * (t->c.N + 1) * m->c.N : 0;
}

static double flop(const struct lm *m, int B, int L, int M)
{
    const struct encoder *const t = m->drive_data;

    return plain_flop(m, B, L, 0) + sublayers_flop(&t->layers, B, t->S, 0) + blend_flop(m, B);
}

static double grad_flop(const struct lm *m, int B, int L, int M)
{
    const struct encoder *const t = m->drive_data;

    return plain_grad_flop(m, B, L, 0) + sublayers_grad_flop(&t->layers, B, t->S, 0) +
           2 * blend_flop(m, B);
}

/* What the encoder left, before the norm. */
static bool result(const struct lm *m, int i, struct drive_result *out)
{
    const struct encoder *const t = m->drive_data;

    *out = (struct drive_result){.name = "enc", .real = state(m, t->c.N), .n = source(m)};
    return i < 1;
}

const struct drive drive_encoder = {
    .has = has_encoder,
    .size = sizeof(struct encoder),
    .params = add_params,
    .step = step,
    .bind = bind,
    .bind_grad = bind_grad,
    .build_tables = build_tables,
    .layers = layers,
    .free = free_layers,
    .input = plain_input,
    .forward = forward,
    .backward = backward,
    .replay = backward_encoder,
    .flop = flop,
    .grad_flop = grad_flop,
    .result = result,
};
