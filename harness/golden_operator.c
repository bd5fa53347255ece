/* SPDX-License-Identifier: MIT
 *
 * Golden files of the bare operator (kind = attention). Probabilities are never asked of a backend:
 * they are read off its output by attending over one-hot values, so a kernel that never
 * materialises them is tested as well. */
#include "golden_inner.h"

#include "../variants/block.h"
#include "../variants/checkpoint.h"

#include <string.h>

struct operator_run {
    struct config c;
    struct params params;
    int at_layer; /* parameters before it belong to the model */
    struct block block;
    struct work work;
    struct extent max;
    enum mem_kind kind;
    struct arena arena;
    float *x, *y, *one_hot, *slice, *probs;
    struct work_grad d_work;
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
    block_attach(&o->block, &o->c, &o->params, 0, o->at_layer);
    enum status st = block_bind(&o->block, g, o->kind, m, a, e);
    if (st != OK)
        return st;
    o->grad = o->grad && engine_attn_backward(g, o->block.impl, NULL) == OK;
    work_bind(&o->work, g, &o->block, o->kind, m, a);
    if (o->grad) {
        const struct work shared = o->work;
        work_bind_kept(&o->work, &shared, true, &o->block, o->kind, m, a);
        params_place_grad(&o->params, a);
        o->d_x = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)o->c.D);
        st = work_grad_bind(&o->d_work, g, &o->block, m, a, e);
    }
    o->x = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)o->c.D);
    o->y = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)o->c.D);
    o->one_hot = arena_f32(a, PART_ACTIVATIONS, K * HD);
    o->slice = arena_f32(a, PART_ACTIVATIONS, rows * HD);
    o->probs = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)o->c.H * K);
    return st;
}

/* Memory arrives as it does in use: in segments of at most L rows. */
static void remember(struct operator_run *o, const struct engine *g, const float *mem)
{
    const struct extent m = o->max;
    const size_t D = (size_t)o->c.D;

    for (int done = 0; done < m.M; done += m.L) {
        const int rows = min_int(m.L, m.M - done);
        for (int b = 0; b < m.B; b++)
            memcpy(o->x + (size_t)(b * rows) * D, mem + (size_t)(b * m.M + done) * D,
                   sizeof(float) * (size_t)rows * D);
        block_remember(g, &o->block, o->kind, &o->work, o->x, m.B, rows);
    }
}

/* probs [B,H,L,K]: with v_j = e_{j-j0} the output of query i is p[i, j0 .. j0+dh). */
static void read_probs(struct operator_run *o, const struct engine *g, struct attn a)
{
    const int K = a.M + a.L, HD = a.H * a.dh;

    a.rel_v = NULL;
    a.lse = NULL;
    a.v = o->one_hot;
    a.v_at = (struct stride){.batch = 0, .row = HD};
    a.o = o->slice;
    for (int j0 = 0; j0 < K; j0 += a.dh) {
        const int n = min_int(a.dh, K - j0);
        memset(o->one_hot, 0, sizeof(float) * (size_t)K * (size_t)HD);
        for (int j = 0; j < n; j++)
            for (int h = 0; h < a.H; h++)
                o->one_hot[(j0 + j) * HD + h * a.dh + j] = 1;
        o->block.impl->forward(g, &a, o->work.attn);
        for (int row = 0; row < a.B * a.H * a.L; row++) {
            const int b = row / (a.H * a.L), h = row / a.L % a.H, i = row % a.L;
            memcpy(o->probs + row * K + j0, o->slice + (b * a.L + i) * HD + h * a.dh,
                   sizeof(float) * (size_t)n);
        }
    }
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
    block_attention_backward(r->g, &o->block, o->kind, &o->work, &o->d_work, o->d_x, dy->data, m.B,
                             m.L);
    golden_compare(r, GRADIENT "x", o->d_x, dy->n);
    golden_compare_grad(r, &o->params);
}

static void run_operator(struct run *r, struct operator_run *o, const struct tensor *x,
                         const struct tensor *mem, const struct tensor *dy)
{
    const struct engine *g = r->g;
    const struct extent m = o->max;
    const float *bias = block_output_bias(&o->block);

    if (o->c.pos->codes)
        o->c.pos->codes(&o->c, m.L + m.M, o->work.codes);
    block_lower(g, &o->block, &o->work);
    if (mem)
        remember(o, g, mem->data);
    if (o->grad)
        o->work.x = o->x;
    memcpy(o->x, x->data, x->n * sizeof(float));
    const struct attn a = block_project(g, &o->block, o->kind, &o->work, o->x, m.B, m.L);
    o->block.impl->forward(g, &a, o->work.attn);
    block_unproject(g, &o->block, &o->work, o->y, m.B, m.L);
    if (bias)
        g->ops.act(&(struct act){.y = o->y,
                                 .x = o->y,
                                 .bias = bias,
                                 .rows = m.B * m.L,
                                 .n = o->c.D,
                                 .threads = g->threads});
    golden_compare(r, "out.y", o->y, x->n);
    if (dy)
        run_gradients(r, o, dy);
    read_probs(o, g, a);
    golden_compare(r, "out.probs", o->probs,
                   (size_t)m.B * (size_t)a.H * (size_t)m.L * ((size_t)m.L + (size_t)m.M));
}

static enum status golden_attention(struct run *r, struct operator_run *o, struct err *e)
{
    struct extent *m = &o->max;
    enum status st = checkpoint_config(r->s, "param.", &o->c, e);

    if (st != OK || (st = golden_whole(r, "batch", &m->B, e)) != OK ||
        (st = golden_whole(r, "seq", &m->L, e)) != OK ||
        (st = golden_whole(r, "mem", &m->M, e)) != OK)
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
    o->kind = m->M ? MEM_HIDDEN : MEM_NONE;
    if (o->c.pos->model_params)
        o->c.pos->model_params(&o->c, &o->params);
    o->at_layer = block_operator_params(&o->c, "", &o->params);
    if (st != OK || (st = bind_operator(o, r->g, e)) != OK ||
        (st = arena_place(&o->arena, HUGE_NEVER, NULL, NULL, e)) != OK ||
        (st = bind_operator(o, r->g, e)) != OK ||
        (st = checkpoint_load(r->s, "param.", &o->params, e)) != OK)
        return st;
    run_operator(r, o, x, mem, dy);
    return OK;
}

enum status golden_operator(struct run *r, struct err *e)
{
    struct operator_run o = {0};
    const enum status st = golden_attention(r, &o, e);

    params_free(&o.params);
    arena_release(&o.arena);
    return st;
}
