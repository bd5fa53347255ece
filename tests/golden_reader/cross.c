/* SPDX-License-Identifier: MIT
 *
 * Golden files of cross attention (kind = cross), forward and backward: in.x [B,L,D] attends to
 * in.ctx [B,S,d_ctx], of which in.ctx_len [B] rows count. */
#include "reader.h"

#include "variants/model/attention/cross.h"
#include "variants/model/checkpoint/checkpoint.h"

struct cross_run {
    struct cross t;
    const struct tensor *ctx;
    float *d_ctx;
};

static enum status bind(struct run *r, struct err *e)
{
    struct cross_run *const o = r->data;

    golden_bind_part(r, r->n_y);
    o->t.weights = r->params.v;
    o->d_ctx = arena_f32(&r->arena, PART_ACTIVATIONS, o->ctx->n);
    const struct arena before = r->arena;
    const enum status st = cross_bind(&o->t, r->g, PART_ACTIVATIONS, r->grad, &r->arena, e);
    if (st != E_UNSUPPORTED || !r->grad)
        return st;
    r->grad = false; /* forward alone */
    r->arena = before;
    return cross_bind(&o->t, r->g, PART_ACTIVATIONS, false, &r->arena, e);
}

/* in.ctx says how many rows a context has. */
static enum status read_context(struct run *r, struct err *e)
{
    struct cross_run *const o = r->data;
    const struct tensor *const lengths = safetensors_find(r->s, "in.ctx_len");
    enum status st = OK;

    TRY(golden_size(r, "d_ctx", GOLDEN_WIDE, &o->t.ctx_width, e));
    o->ctx = safetensors_find(r->s, "in.ctx");
    if (!o->ctx || o->ctx->rank != 3 || o->ctx->shape[1] < 1 || o->ctx->shape[1] > GOLDEN_WIDE)
        return safetensors_fail(r->s, e, "in.ctx is missing or has no rows");
    o->t.S = o->ctx->shape[1];
    golden_need(r, "in.ctx", DTYPE_F32, (size_t)r->max.B * (size_t)o->t.S * (size_t)o->t.ctx_width,
                &st, e);
    if (lengths)
        golden_need(r, "in.ctx_len", DTYPE_I32, (size_t)r->max.B, &st, e);
    o->t.seen = lengths ? lengths->data : NULL;
    for (int b = 0; st == OK && o->t.seen && b < r->max.B; b++)
        if (o->t.seen[b] < 1 || o->t.seen[b] > o->t.S)
            return safetensors_fail(r->s, e, "in.ctx_len has %d  -> use lengths from 1 to %d",
                                    o->t.seen[b], o->t.S);
    TRY(st);
    return golden_few(r, (double)r->max.B * o->t.S * (r->c.H * r->max.L + o->t.ctx_width), e);
}

static enum status read(struct run *r, struct err *e)
{
    struct cross_run *const o = r->data;
    struct config *const c = &r->c;

    TRY(golden_part(r, NULL, "DHd", e));
    c->causal = DIRECTION_BOTH;
    c->attn_bias = safetensors_find(r->s, "param.attn.q.bias") != NULL;
    TRY(checkpoint_check(r->s, c, e));
    TRY(golden_inputs(r, c->D, e));
    TRY(read_context(r, e));
    o->t.c = c;
    o->t.B = r->max.B;
    o->t.L = r->max.L;
    cross_params(c, o->t.ctx_width, "", &r->params);
    return OK;
}

static enum status forward(struct run *r, struct err *e)
{
    const struct cross_run *const o = r->data;

    params_pack(&r->params, r->g);
    cross_context(r->g, &o->t, o->ctx->data);
    cross_forward(r->g, &o->t, r->y, r->x->data);
    return OK;
}

static void backward(struct run *r)
{
    const struct cross_run *const o = r->data;

    cross_backward(r->g, &o->t, r->d_x, o->d_ctx, r->dy->data, r->x->data, o->ctx->data);
    golden_compare(r, GRADIENT "ctx", o->d_ctx, o->ctx->n);
}

/* Probabilities [B,H,L,S]; those of rows that do not count are 0. */
static void finish(struct run *r)
{
    const struct cross_run *const o = r->data;
    const ptrdiff_t head = (ptrdiff_t)o->t.L * o->t.S, of_sequence = head * r->c.H;
    const size_t n = (size_t)r->max.B * (size_t)of_sequence;
    float *const probs = calloc(n, sizeof(*probs));

    NEED(probs);
    for (int i = 0; i < cross_calls(&o->t); i++) {
        const struct attn a = cross_call(&o->t, i);
        golden_weights(r->g, &a, o->t.impl, o->t.scratch, probs + i * of_sequence, head, o->t.S);
    }
    golden_compare(r, "out.probs", probs, n);
    free(probs);
}

const struct golden_kind golden_cross = {
    .name = "cross",
    .size = sizeof(struct cross_run),
    MEMBERS(, read, bind, forward, backward, finish),
};
