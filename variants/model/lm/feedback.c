/* SPDX-License-Identifier: MIT
 *
 * The Feedback Transformer, forward: equations in feedback.h. */
#include "feedback.h"
#include "lm.h"
#include "variants/model/sublayer/sublayer_project.h"
#include "variants/parts/norm.h"

/* ---- declaration and binding ---------------------------------------------------------------- */

static bool feeds_back(const struct config *c) { return c->feedback.on; }

static void add_params(struct lm *m)
{
    const struct config *const c = &m->c;
    struct params *const p = &m->params;

    params_vector(p, INIT_ZERO, 0, c->N + 1, "feedback.", "weight");
    if (c->feedback.shared) {
        params_map(p, config_kv_width(c), c->D, "attn.", "k.weight");
        params_map(p, config_kv_width(c), c->D, "attn.", "v.weight");
    }
}

int feedback_stores(const struct config *c) { return c->feedback.shared ? 1 : c->N; }

/* Sub-layers run one token of each sequence. */
static struct extent one_token(struct lm *m)
{
    return (struct extent){m->max.B, 1, m->max.M + m->max.L - 1};
}

static struct sublayer *layer(const struct feedback *t, int l)
{
    return &t->sublayers->at[sublayers_first(t->sublayers, l)];
}

const struct param *feedback_weight(const struct feedback *t, int store, bool values)
{
    const int which = values ? ATTN_V : ATTN_K;

    return t->c->feedback.shared ? &t->weight[which] : &layer(t, store)->weights[which];
}

const struct param *feedback_norm(const struct feedback *t, int store)
{
    const struct sublayer *const s = layer(t, store);

    return wiring_norms_first(s->wiring) ? s->norm : NULL;
}

static enum status bind(struct lm *m, const struct engine *g, struct arena *a, struct err *e)
{
    struct feedback *const t = m->drive_data;
    const struct config *const c = &m->c;
    const struct extent max = m->max;
    const int stores = feedback_stores(c);
    const size_t step = (size_t)max.B * (size_t)c->D, D = (size_t)c->D;
    const int reach = m->kind == MEM_KV ? max.L : max.M + max.L;
    const size_t all = (size_t)max.B * (size_t)reach;
    struct cache *caches = t->keys ? t->keys : need_room(2 * (size_t)stores, sizeof(*caches));

    *t = (struct feedback){.c = c,
                           .sublayers = &m->sublayers,
                           .weight = &m->params.v[m->at_drive],
                           .mem = m->kind,
                           .max = max,
                           .reach = reach,
                           .keys = caches,
                           .values = caches + stores};
    t->in = arena_f32(a, PART_ACTIVATIONS, step * (size_t)max.L);
    TAKE(a, PART_ACTIVATIONS, step, &t->h, &t->mixed);
    t->share = arena_f32(a, PART_SCRATCH, (size_t)c->N + 1);
    t->rows = arena_f32(a, PART_ACTIVATIONS, all * D);
    t->normed = feedback_norm(t, 0) ? arena_f32(a, PART_ACTIVATIONS, all * D) : t->rows;
    const bool kv = t->mem == MEM_KV;
    for (int i = 0; i < 2 * stores; i++)
        cache_bind(&caches[i], max.B, reach, kv ? max.M : 0, config_kv_width(c), a);
    for (int l = 0; l < c->N; l++) {
        struct sublayer *const s = layer(t, l);
        s->state.attention.feedback = t;
        if (l == 0 && t->mem == MEM_HIDDEN)
            cache_bind(&s->memory, max.B, max.L, max.M, c->D, a);
    }
    return OK;
}

static void free_caches(struct lm *m)
{
    struct feedback *const t = m->drive_data;

    free(t->keys);
}

static float *input(const struct lm *m, float *out)
{
    const struct feedback *const t = m->drive_data;

    return t->in;
}

/* ---- keys and values ------------------------------------------------------------------------ */

/* Floats from one sequence's rows to the next one's. */
static ptrdiff_t stride_of(const struct feedback *t) { return (ptrdiff_t)t->reach * t->c->D; }

static struct seq_rows rows_at(const struct feedback *t, const float *base, int first)
{
    CHECK(base);
    return (struct seq_rows){(float *)base + (ptrdiff_t)first * t->c->D, stride_of(t)};
}

/* Keys and values of n rows of each sequence, the first of them `first`; where they are stored it
 * is `to`. */
static void project(struct feedback *t, const struct engine *g, int B, int first, int to, int n)
{
    for (int i = 0; i < feedback_stores(t->c); i++) {
        const struct param *const norm = feedback_norm(t, i);
        for (int b = 0; norm && b < B; b++)
            norm_apply(g, t->c, norm, rows_at(t, t->normed, first).at + b * stride_of(t),
                       rows_at(t, t->rows, first).at + b * stride_of(t), NULL, n);
        const struct seq_rows from = rows_at(t, t->normed, first);
        project_map(g, feedback_weight(t, i, false), NULL, cache_from(&t->keys[i], to), from, B, n);
        project_map(g, feedback_weight(t, i, true), NULL, cache_from(&t->values[i], to), from, B,
                    n);
    }
}

/* Before a segment of L tokens: the rows that are remembered, and room for new ones. */
static void recall(struct feedback *t, const struct engine *g, int B, int L)
{
    struct cache *const memory = &layer(t, 0)->memory;
    const bool hidden = t->mem == MEM_HIDDEN;

    t->past = t->mem == MEM_KV ? t->keys->M : hidden ? memory->M : 0;
    for (int i = 0; i < 2 * feedback_stores(t->c); i++)
        cache_reserve(&t->keys[i], (hidden ? t->past : 0) + L);
    if (!hidden)
        return;
    cache_reserve(memory, L);
    rows_copy(rows_at(t, t->rows, 0), cache_from(memory, 0), B, (size_t)t->past * (size_t)t->c->D);
    if (t->past)
        project(t, g, B, 0, 0, t->past);
}

/* ---- forward -------------------------------------------------------------------------------- */

float *feedback_state(const struct feedback *t, int l)
{
    return layer_state(t->sublayers, l, t->h);
}

void feedback_step(const struct feedback *t, float *one, float *all, int step, int B, int L,
                   bool back)
{
    const ptrdiff_t D = t->c->D;
    const struct seq_rows row = {one, D}, of_all = {all + step * D, L * D};

    rows_copy(back ? of_all : row, back ? row : of_all, B, (size_t)D);
}

void feedback_run(struct feedback *t, const struct engine *g, int step, int B, int L, bool again)
{
    struct sublayers *const s = t->sublayers;
    const uint64_t drop_step = s->drop.step;
    const size_t n = (size_t)B * (size_t)t->c->D;
    float *x = feedback_state(t, 0);

    s->drop.step = drop_step << 24 | (uint64_t)step;
    feedback_step(t, x, t->in, step, B, L, false);
    memset(t->mixed, 0, n * sizeof(float));
    add_times(t->mixed, x, t->share[0], n, 1);
    for (int l = 0; l < t->c->N; l++) {
        float *const next = feedback_state(t, l + 1);
        struct attention *const a = &layer(t, l)->state.attention;
        a->seen = t->past + step;
        a->again = again;
        layer_forward(s, g, l, next, x, B, 1);
        add_times(t->mixed, next, t->share[l + 1], n, 1);
        x = next;
    }
    s->drop.step = drop_step;
}

static void forward(struct lm *m, const struct engine *g, float *out, int B, int L)
{
    struct feedback *const t = m->drive_data;
    const size_t D = (size_t)t->c->D;
    const bool hidden = t->mem == MEM_HIDDEN;

    shares_of(t->weight->data, t->c->N + 1, t->share);
    recall(t, g, B, L);
    for (int step = 0; step < L; step++) {
        const int at = hidden ? t->past + step : step;
        feedback_run(t, g, step, B, L, false);
        feedback_step(t, t->h, out, step, B, L, true);
        rows_copy(rows_at(t, t->rows, at), (struct seq_rows){t->mixed, t->c->D}, B, D);
        project(t, g, B, at, t->past + step, 1);
    }
    if (hidden)
        rows_copy(cache_from(&layer(t, 0)->memory, t->past), rows_at(t, t->rows, t->past), B,
                  (size_t)L * D);
}

/* ---- memory --------------------------------------------------------------------------------- */

void feedback_remember(struct feedback *t, const struct engine *g, const float *x, int B, int n)
{
    const ptrdiff_t floats = (ptrdiff_t)n * t->c->D;
    const struct seq_rows from = {(float *)x, floats};

    if (t->mem == MEM_HIDDEN)
        rows_copy(cache_new_rows(&layer(t, 0)->memory, n), from, B, (size_t)floats);
    if (t->mem != MEM_KV)
        return;
    for (int i = 0; i < 2 * feedback_stores(t->c); i++)
        cache_reserve(&t->keys[i], n);
    rows_copy(rows_at(t, t->rows, 0), from, B, (size_t)floats);
    project(t, g, B, 0, t->keys->M, n);
}

void feedback_commit(struct feedback *t, int L)
{
    if (t->mem == MEM_HIDDEN)
        cache_commit(&layer(t, 0)->memory, L);
    for (int i = 0; t->mem == MEM_KV && i < 2 * feedback_stores(t->c); i++)
        cache_commit(&t->keys[i], L);
}

void feedback_forget(struct feedback *t)
{
    cache_clear(&layer(t, 0)->memory);
    for (int i = 0; i < 2 * feedback_stores(t->c); i++)
        cache_clear(&t->keys[i]);
}

/* Hidden rows: the first sub-layer counts what is cached of them. */
static size_t carried(const struct lm *m, int B)
{
    return m->kind == MEM_HIDDEN ? (size_t)B * (size_t)m->max.M * (size_t)m->c.D : 0;
}

const struct drive drive_feedback = {
    .has = feeds_back,
    .size = sizeof(struct feedback),
    .memory = true,
    .params = add_params,
    .step = one_token,
    .bind = bind,
    .bind_grad = feedback_bind_grad,
    .free = free_caches,
    .carried = carried,
    .input = input,
    .forward = forward,
    .backward = feedback_backward,
    .flop = plain_flop,
    .grad_flop = plain_grad_flop,
};
