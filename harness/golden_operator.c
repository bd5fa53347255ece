/* SPDX-License-Identifier: MIT
 *
 * Golden files of the bare operator (kind = attention). Probabilities are never asked of a backend:
 * they are read off its output by attending over one-hot values, so a kernel that never
 * materialises them is tested as well. */
#include "golden_inner.h"

#include "../variants/checkpoint.h"
#include "../variants/sub_attention.h"
#include "../variants/sub_list.h"

#include <string.h>

struct operator_run {
    struct config c;
    struct params params;
    struct subs subs; /* one sub-layer, without wiring */
    struct extent max;
    enum mem_kind kind;
    int base; /* stream position of the first remembered row */
    struct arena arena;
    float *x, *y, *one_hot, *slice, *probs;
    int32_t *buckets; /* [K] */
    float *d_x;
    bool grad; /* the file has gradients and the backend can compute them */
};

static enum status bind_operator(struct operator_run *o, const struct engine *g, struct err *e)
{
    struct arena *a = &o->arena;
    const struct extent m = o->max;
    const size_t HD = (size_t)o->c.H * (size_t)o->c.dh, K = (size_t)m.L + (size_t)m.M;
    const size_t rows = (size_t)m.B * (size_t)m.L;

    params_place(&o->params, a);
    enum status st = subs_bind(&o->subs, g, &o->params, o->kind, m, a, e);
    if (st != OK)
        return st;
    o->grad = o->grad && subs_can_grad(&o->subs, g, NULL) == OK;
    if (o->grad) {
        st = subs_bind_grad(&o->subs, g, a, e);
        params_place_grad(&o->params, a);
        o->d_x = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)o->c.D);
    }
    o->x = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)o->c.D);
    o->y = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)o->c.D);
    o->one_hot = arena_f32(a, PART_ACTIVATIONS, K * HD);
    o->buckets = arena_take(a, PART_ACTIVATIONS, K * sizeof(*o->buckets));
    o->slice = arena_f32(a, PART_ACTIVATIONS, rows * HD);
    o->probs = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)o->c.H * K);
    return st;
}

/* Memory arrives as it does in use: in segments of at most L rows, behind `base` rows
 * that have been forgotten. */
static void remember(struct operator_run *o, const struct engine *g, const float *mem)
{
    const struct extent m = o->max;
    const size_t D = (size_t)o->c.D;

    o->subs.at->memory.seen = o->base;
    for (int done = 0; done < m.M; done += m.L) {
        const int rows = min_int(m.L, m.M - done);
        for (int b = 0; b < m.B; b++)
            memcpy(o->x + (size_t)(b * rows) * D, mem + (size_t)(b * m.M + done) * D,
                   sizeof(float) * (size_t)rows * D);
        sub_remember(g, o->subs.at, o->subs.work, o->x, m.B, rows);
    }
}

/* probs [B,H,L,K]: with v_j = e_{j-j0} the output of query i is p[i, j0 .. j0+dh). */
static void read_probs(struct operator_run *o, const struct engine *g, struct attn a)
{
    const int K = a.M + a.L, HD = a.H * a.dh, kv_width = a.Hkv * a.dh;

    a.rel_v = NULL;
    a.lse = NULL;
    a.v = o->one_hot;
    a.v_at = (struct stride){.batch = 0, .row = kv_width};
    a.o = o->slice;
    for (int j0 = 0; j0 < K; j0 += a.dh) {
        const int n = min_int(a.dh, K - j0);
        memset(o->one_hot, 0, sizeof(float) * (size_t)K * (size_t)kv_width);
        for (int j = 0; j < n; j++)
            for (int h = 0; h < a.Hkv; h++)
                o->one_hot[(j0 + j) * kv_width + h * a.dh + j] = 1;
        o->subs.at->of.attention.impl->forward(g, &a, o->subs.work->scratch);
        for (int row = 0; row < a.B * a.H * a.L; row++) {
            const int b = row / (a.H * a.L), h = row / a.L % a.H, i = row % a.L;
            memcpy(o->probs + row * K + j0, o->slice + (b * a.L + i) * HD + h * a.dh,
                   sizeof(float) * (size_t)n);
        }
    }
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
    const struct attn *a = &o->subs.at->of.attention.lowered;
    const int K = o->max.L + o->max.M;

    for (int n = 0; n < K; n++)
        o->buckets[n] = table && a->bias ? row_of_distance(a, table, n) : -1;
    golden_compare_whole(r, "out.bucket", o->buckets, (size_t)K);
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
    attention_backward(r->g, o->subs.at, o->subs.work,
                       sub_source_again(o->subs.at, o->subs.work, m.B, m.L), o->d_x, dy->data, m.M);
    golden_compare(r, GRADIENT "x", o->d_x, dy->n);
    golden_compare_grad(r, &o->params);
}

static void run_operator(struct run *r, struct operator_run *o, const struct tensor *x,
                         const struct tensor *mem, const struct tensor *dy)
{
    const struct engine *g = r->g;
    const struct extent m = o->max;
    struct sub *const s = o->subs.at;
    struct work *const w = o->subs.work;

    if (o->c.pos->codes)
        o->c.pos->codes(&o->c, m.L + m.M, o->subs.codes);
    subs_lower(&o->subs, g);
    if (o->kind == MEM_HIDDEN)
        remember(o, g, mem ? mem->data : NULL);
    float *const in = subs_input(&o->subs, o->x);
    memcpy(in, x->data, x->n * sizeof(float));
    const struct attn a = attention_project(g, s, w, sub_source(g, s, w, in, m.B, m.L));
    s->of.attention.impl->forward(g, &a, w->scratch);
    attention_unproject(g, s, w, m.B * m.L, (struct act){.y = o->y});
    golden_compare(r, "out.y", o->y, x->n);
    check_buckets(r, o);
    if (dy)
        run_gradients(r, o, dy);
    read_probs(o, g, a);
    golden_compare(r, "out.probs", o->probs,
                   (size_t)m.B * (size_t)a.H * (size_t)m.L * ((size_t)m.L + (size_t)m.M));
}

/* A file that feeds what this program does not read would be judged by half. Slopes are what their
 * head count makes them. */
static enum status known_inputs(const struct run *r, struct err *e)
{
    static const char *const known[] = {"in.x", "in.mem", "in.dy", "in.slopes"};

    for (int i = 0; i < r->s->n_tensors; i++) {
        const char *name = r->s->tensors[i].name;
        bool found = strncmp(name, "in.", 3) != 0;
        for (size_t k = 0; k < ARRAY_LEN(known); k++)
            found = found || strcmp(name, known[k]) == 0;
        if (!found)
            return fail(e, E_IO, "%s: input \"%s\" is not built in  -> is it for a newer program?",
                        r->s->path, name);
    }
    return OK;
}

static enum status golden_attention(struct run *r, struct operator_run *o, struct err *e)
{
    struct extent *m = &o->max;
    enum status st = checkpoint_config(r->s, "param.", &o->c, e);

    if (st != OK || (st = golden_whole(r, "batch", &m->B, e)) != OK ||
        (st = golden_whole(r, "seq", &m->L, e)) != OK ||
        (st = golden_whole(r, "mem", &m->M, e)) != OK ||
        (st = golden_whole(r, "base", &o->base, e)) != OK || (st = known_inputs(r, e)) != OK)
        return st;
    const size_t row = (size_t)m->B * (size_t)o->c.D;
    const struct tensor *mem = NULL, *dy = NULL;
    const struct tensor *x = golden_need(r, "in.x", DTYPE_F32, row * (size_t)m->L, &st, e);
    if (m->M)
        mem = golden_need(r, "in.mem", DTYPE_F32, row * (size_t)m->M, &st, e);
    if (golden_has_grad(r)) {
        dy = golden_need(r, "in.dy", DTYPE_F32, row * (size_t)m->L, &st, e);
        o->grad = true;
    }
    o->kind = m->M || o->base ? MEM_HIDDEN : MEM_NONE;
    if (o->c.pos->model_params)
        o->c.pos->model_params(&o->c, &o->params);
    if (st != OK || (st = subs_init_operator(&o->subs, &o->c, &o->params, 0, e)) != OK ||
        (st = bind_operator(o, r->g, e)) != OK ||
        (st = arena_place(&o->arena, HUGE_NEVER, NULL, NULL, e)) != OK ||
        (st = bind_operator(o, r->g, e)) != OK ||
        (st = checkpoint_load(r->s, "param.", &o->params, e)) != OK ||
        (st = golden_no_strangers(r, &o->params, e)) != OK)
        return st;
    run_operator(r, o, x, mem, dy);
    return OK;
}

enum status golden_operator(struct run *r, struct err *e)
{
    struct operator_run o = {0};
    const enum status st = golden_attention(r, &o, e);

    params_free(&o.params);
    subs_free(&o.subs);
    arena_release(&o.arena);
    return st;
}
