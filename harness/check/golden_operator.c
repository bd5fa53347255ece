/* SPDX-License-Identifier: MIT
 *
 * Golden files of the bare operator (kind = attention). Probabilities are never asked of a backend:
 * they are read off its output by attending over one-hot values, so a kernel that never
 * materialises them is tested as well. */
#include "golden_inner.h"

#include "variants/model/checkpoint.h"
#include "variants/model/sublayer_attention.h"
#include "variants/model/sublayer_list.h"

#include <stdlib.h>
#include <string.h>

struct operator_run {
    struct config c;
    struct params params;
    struct sublayers sublayers; /* one sub-layer, without wiring */
    struct extent max;
    enum mem_kind kind;
    int base; /* stream position of the first remembered row */
    struct arena arena;
    float *x, *y;
    int32_t *buckets; /* [K] */
    int32_t *visible; /* [H,L,K] */
    float *d_x;
    /* Scores that arrive from an attention below and go on to one above; NULL = none. */
    const struct tensor *scores_in, *d_scores_out;
    struct work below, above;
    bool grad; /* the file has gradients and the backend can compute them */
};

static enum status bind_operator(void *arg, const struct engine *g, struct err *e)
{
    struct operator_run *o = arg;
    struct arena *a = &o->arena;
    const struct extent m = o->max;
    const size_t K = (size_t)m.L + (size_t)m.M;
    const size_t rows = (size_t)m.B * (size_t)m.L;

    params_place(&o->params, a);
    enum status st = sublayers_bind(&o->sublayers, g, &o->params, o->kind, m, a, e);
    if (st != OK)
        return st;
    o->grad = o->grad && sublayers_can_grad(&o->sublayers, g, NULL) == OK;
    if (o->grad) {
        st = sublayers_bind_grad(&o->sublayers, g, a, e);
        params_place_grad(&o->params, a);
        o->d_x = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)o->c.D);
    }
    o->x = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)o->c.D);
    o->y = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)o->c.D);
    o->buckets = arena_take(a, PART_ACTIVATIONS, K * sizeof(*o->buckets));
    o->visible = arena_take(a, PART_ACTIVATIONS, (size_t)(o->c.H * m.L) * K * sizeof(*o->visible));
    return st;
}

/* Values v [K,Hkv,dh] and sink_v [H,sinks,dh] that are 1 where column c0+e of the weights meets
 * coordinate e, else 0. The sinks' columns come first. */
static void set_one_hot(const struct attn *a, float *v, float *sink_v, int c0, int n)
{
    const int K = a->M + a->L, kv_width = a->Hkv * a->dh;

    memset(v, 0, sizeof(float) * (size_t)(K * kv_width));
    memset(sink_v, 0, sizeof(float) * (size_t)(a->H * a->sinks * a->dh));
    for (int e = 0; e < n; e++) {
        const int sink = c0 + e, j = sink - a->sinks;
        for (int h = 0; h < a->H && j < 0; h++)
            sink_v[(h * a->sinks + sink) * a->dh + e] = 1;
        for (int h = 0; h < a->Hkv && j >= 0; h++)
            v[j * kv_width + h * a->dh + e] = 1;
    }
}

/* With one-hot values the output of query i is p[i, c0 .. c0+dh). */
void golden_probs(struct run *r, struct attn a, const struct attn_impl *impl, void *scratch)
{
    const int columns = a.sinks + a.M + a.L, HD = a.H * a.dh, rows = a.B * a.H * a.L;
    float *const v = malloc(sizeof(float) * (size_t)((columns + rows) * HD + rows * columns));
    float *const sink_v = v + (a.M + a.L) * HD, *const slice = v + columns * HD;
    float *const probs = slice + rows * HD;

    CHECK(v);
    a.rel_v = NULL;
    a.lse = NULL;
    a.o = slice;
    a.v = v;
    a.v_at = (struct stride){.batch = 0, .row = a.Hkv * a.dh};
    a.sink_v = a.sinks ? sink_v : NULL;
    for (int c0 = 0; c0 < columns; c0 += a.dh) {
        const int n = min_int(a.dh, columns - c0);
        set_one_hot(&a, v, sink_v, c0, n);
        impl->forward(r->g, &a, scratch);
        for (int row = 0; row < rows; row++) {
            const int b = row / (a.H * a.L), h = row / a.L % a.H, i = row % a.L;
            memcpy(probs + row * columns + c0, slice + (b * a.L + i) * HD + h * a.dh,
                   sizeof(float) * (size_t)n);
        }
    }
    golden_compare(r, "out.probs", probs, (size_t)rows * (size_t)columns);
    free(v);
}

/* The row of the table [rows,H] that distance n reads, told by its values; -1 = none. */
static int row_of_distance(const struct attn *a, const struct param *table, int n)
{
    const float *bias = a->bias + a->R - 1 - min_int(n, a->R - 1);

    for (int row = 0; row < table->shape[0]; row++) {
        int same = 0;
        while (same < a->H && bias[same * a->bias_head] == table->data[row * a->H + same])
            same++;
        if (same == a->H)
            return row;
    }
    return -1;
}

/* out.bucket [K]: which row of a table of biases each distance reads. */
static void check_buckets(struct run *r, struct operator_run *o)
{
    const struct param *table = params_find(&o->params, "attn.rel_bias");
    const struct attn *a = &o->sublayers.at->of.attention.prepared;
    const int K = o->max.L + o->max.M;

    for (int n = 0; n < K; n++)
        o->buckets[n] = table && a->bias ? row_of_distance(a, table, n) : -1;
    golden_compare_whole(r, "out.bucket", o->buckets, (size_t)K);
}

/* out.visible [H,L,K] */
static void check_visible(struct run *r, struct operator_run *o, const struct attn *a)
{
    const int K = a->M + a->L;

    for (int at = 0; at < a->H * a->L * K; at++) {
        const struct sight sight = attn_sight(a, at / (a->L * K));
        o->visible[at] = sight_visible(&sight, at / K % a->L, at % K);
    }
    golden_compare_whole(r, "out.visible", o->visible, (size_t)a->H * (size_t)(a->L * K));
}

/* in.mask_random [blocks of queries, random] is what the file's masks have drawn. */
static enum status draw(const struct run *r, struct operator_run *o, struct err *e)
{
    const struct tensor *t = safetensors_find(r->s, "in.mask_random");
    const int needs = o->base + o->max.M + o->max.L;

    for (int k = 0; t && k < o->c.masks.n; k++) {
        struct mask *const m = &o->c.masks.at[k];
        if (!m->n_random)
            continue;
        if (t->dtype != DTYPE_I32 || t->rank != 2 || t->shape[1] != m->n_random ||
            t->shape[0] * (int64_t)m->block < needs)
            return fail(e, E_IO, "%s: in.mask_random does not fit masks and lengths", r->s->path);
        m->random = t->data;
        m->random_blocks = t->shape[0];
    }
    return OK;
}

/* Scores of pairs that are not visible are nobody's. */
static void check_scores(struct run *r, const struct operator_run *o, const char *name,
                         float *scores)
{
    const int K = o->max.M + o->max.L, pairs = o->c.H * o->max.L * K;

    for (int at = 0; at < o->max.B * pairs; at++)
        if (!o->visible[at % pairs])
            scores[at] = 0;
    golden_compare(r, name, scores, (size_t)o->max.B * (size_t)pairs);
}

/* Gradients of the sum of y (.) dy; the input's is what both of its paths add up to. */
static void run_gradients(struct run *r, struct operator_run *o, const struct tensor *dy)
{
    const struct extent m = o->max;

    if (!o->grad) {
        golden_skip_grad(r, "no backward pass");
        return;
    }
    params_zero_grad(&o->params);
    float *const d_scores = o->sublayers.work->d_own[AT_SCORES];
    if (o->d_scores_out)
        memcpy(d_scores, o->d_scores_out->data, o->d_scores_out->n * sizeof(float));
    attention_backward(r->g, o->sublayers.at, o->sublayers.work,
                       sublayer_source_again(o->sublayers.at, o->sublayers.work, m.B, m.L), o->d_x,
                       dy->data, m.M);
    golden_compare(r, GRADIENT "x", o->d_x, dy->n);
    golden_compare_grad(r, &o->params);
    if (o->d_scores_out)
        check_scores(r, o, GRADIENT "scores_in", d_scores);
}

/* As if between two others. */
static void link_scores(struct operator_run *o)
{
    struct work *const w = o->sublayers.work;

    if (!o->scores_in)
        return;
    o->below.own[AT_SCORES] = (float *)o->scores_in->data;
    w->below = &o->below;
    w->above = &o->above;
}

static void run_operator(struct run *r, struct operator_run *o, const struct tensor *x,
                         const struct tensor *mem, const struct tensor *dy)
{
    const struct engine *g = r->g;
    const struct extent m = o->max;
    struct sublayer *const s = o->sublayers.at;
    struct work *const w = o->sublayers.work;

    if (o->c.pos->pos_encoding)
        o->c.pos->pos_encoding(&o->c, m.L + m.M, o->sublayers.pos_encoding);
    sublayers_build_tables(&o->sublayers, g);
    link_scores(o);
    s->memory.seen = o->base; /* rows that have been forgotten */
    if (mem)
        golden_remember(r, &o->sublayers, m, o->x, mem->data);
    float *const in = sublayers_input(&o->sublayers, o->x);
    memcpy(in, x->data, x->n * sizeof(float));
    const struct attn a = attention_project(g, s, w, sublayer_source(g, s, w, in, m.B, m.L));
    s->of.attention.impl->forward(g, &a, w->scratch);
    attention_unproject(g, s, w, m.B * m.L, (struct act){.y = o->y});
    golden_compare(r, "out.y", o->y, x->n);
    check_buckets(r, o);
    check_visible(r, o, &a);
    if (o->scores_in)
        check_scores(r, o, "out.scores_out", w->own[AT_SCORES]);
    if (dy)
        run_gradients(r, o, dy);
    golden_probs(r, a, s->of.attention.impl, w->scratch);
}

static enum status golden_attention(struct run *r, struct operator_run *o, struct err *e)
{
    /* Slopes are what their head count makes them. */
    static const char *const inputs[] = {
        "in.x",           "in.mem",       "in.dy",          "in.slopes",
        "in.mask_random", "in.scores_in", "in.dscores_out", NULL};
    struct extent *m = &o->max;
    enum status st = checkpoint_config(r->s, "param.", &o->c, e);

    if (st != OK || (st = golden_whole(r, "batch", &m->B, e)) != OK ||
        (st = golden_whole(r, "seq", &m->L, e)) != OK ||
        (st = golden_whole(r, "mem", &m->M, e)) != OK ||
        (st = golden_whole(r, "base", &o->base, e)) != OK ||
        (st = golden_known_inputs(r, inputs, e)) != OK || (st = draw(r, o, e)) != OK)
        return st;
    const size_t row = (size_t)m->B * (size_t)o->c.D;
    const struct tensor *mem = NULL, *dy = NULL;
    const struct tensor *x = golden_need(r, "in.x", DTYPE_F32, row * (size_t)m->L, &st, e);
    if (m->M)
        mem = golden_need(r, "in.mem", DTYPE_F32, row * (size_t)m->M, &st, e);
    const size_t scores = (size_t)(m->B * o->c.H * m->L) * (size_t)(m->M + m->L);
    if (safetensors_find(r->s, "in.scores_in")) {
        o->c.score_residual = SCORE_RESIDUAL_SUM;
        o->scores_in = golden_need(r, "in.scores_in", DTYPE_F32, scores, &st, e);
        o->d_scores_out = golden_need(r, "in.dscores_out", DTYPE_F32, scores, &st, e);
    }
    if (golden_has_grad(r)) {
        dy = golden_need(r, "in.dy", DTYPE_F32, row * (size_t)m->L, &st, e);
        o->grad = true;
    }
    o->kind = m->M || o->base ? MEM_HIDDEN : MEM_NONE;
    if (o->c.pos->model_params)
        o->c.pos->model_params(&o->c, &o->params);
    if (st != OK || (st = sublayers_init_operator(&o->sublayers, &o->c, &o->params, 0, e)) != OK ||
        (st = golden_place(r, bind_operator, o, &o->arena, &o->params, e)) != OK)
        return st;
    run_operator(r, o, x, mem, dy);
    return OK;
}

enum status golden_operator(struct run *r, struct err *e)
{
    struct operator_run o = {0};
    const enum status st = golden_attention(r, &o, e);

    params_free(&o.params);
    sublayers_free(&o.sublayers);
    arena_release(&o.arena);
    return st;
}
