/* SPDX-License-Identifier: MIT
 *
 * Golden files of an encoder and a decoder (kind = seq2seq), forward and backward: in.src [B,S], of
 * which in.src_len [B] tokens count, and in.tokens, in.targets [B,L]. */
#include "golden_inner.h"

#include "variants/model/checkpoint.h"
#include "variants/model/seq2seq.h"

#include <string.h>

struct seq2seq_run {
    struct seq2seq t;
    const int32_t *src, *tokens, *targets;
    float *nll;
};

static enum status bind(struct run *r, struct err *e)
{
    struct seq2seq_run *const o = r->data;

    o->nll = arena_f32(&r->arena, PART_ACTIVATIONS, (size_t)r->max.B * (size_t)r->max.L);
    return seq2seq_bind(&o->t, r->g, r->grad, &r->arena, e);
}

/* Tokens [B,n] of the vocabulary; or lengths from 1 to `most`. */
static const int32_t *numbers(const struct run *r, const char *name, int n, int least, int most,
                              enum status *st, struct err *e)
{
    const size_t all = (size_t)r->max.B * (size_t)n;
    const struct tensor *const t = golden_need(r, name, DTYPE_I32, all, st, e);
    const int32_t *const at = t ? t->data : NULL;

    for (size_t i = 0; at && *st == OK && i < all; i++)
        if (at[i] < least || at[i] > most)
            *st = safetensors_fail(r->s, e, "%s has %d  -> use %d to %d", name, at[i], least, most);
    return at;
}

static enum status read(struct run *r, struct err *e)
{
    struct seq2seq_run *const o = r->data;
    struct config *const c = &r->c;
    int layers = 0, S = 0;
    bool transparent = false;
    enum status st;

    if ((st = golden_extent(r, e)) != OK ||
        (st = golden_size(r, "src", GOLDEN_WIDE, &S, e)) != OK ||
        (st = seq2seq_config(r->s, c, &layers, &transparent, e)) != OK)
        return st;
    if (r->max.M)
        return safetensors_fail(r->s, e, "mem %d with an encoder and a decoder  -> use mem 0",
                                r->max.M);
    const double rows = (double)r->max.B * S;
    if ((st = golden_few(r, rows * max_int(c->D, c->F) * (c->N + 1 + layers), e)) != OK ||
        (st = golden_few(r, rows * c->H * max_int(S, r->max.L), e)) != OK)
        return st;
    if ((st = seq2seq_init(&o->t, c, layers, transparent, e)) != OK)
        return st;
    r->weights = &o->t.params;
    o->t.B = r->max.B;
    o->t.S = S;
    o->t.L = r->max.L;
    (void)safetensors_meta(r->s, "total_nll"); /* compared with the losses */
    o->src = numbers(r, "in.src", S, 0, c->V - 1, &st, e);
    o->t.seen = numbers(r, "in.src_len", 1, 1, S, &st, e);
    o->tokens = numbers(r, "in.tokens", r->max.L, 0, c->V - 1, &st, e);
    o->targets = numbers(r, "in.targets", r->max.L, 0, c->V - 1, &st, e);
    return st;
}

static enum status forward(struct run *r, struct err *e)
{
    struct seq2seq_run *const o = r->data;
    struct seq2seq *const t = &o->t;
    const size_t rows = (size_t)t->B * (size_t)t->L;

    seq2seq_forward(t, r->g, o->src, o->tokens, o->targets, o->nll);
    golden_compare(r, "out.enc", seq2seq_top(t), (size_t)t->B * (size_t)t->S * (size_t)r->c.D);
    golden_compare(r, "out.logits", t->logits, rows * (size_t)r->c.V);
    golden_compare(r, "out.nll", o->nll, rows);
    golden_compare_total(r, o->nll, rows);
    if (!r->grad)
        return OK;
    params_zero_grad(&t->params);
    seq2seq_backward(t, r->g, o->src, o->tokens, o->targets);
    golden_compare_grad(r, &t->params);
    (void)e;
    return OK;
}

static void release(struct run *r)
{
    struct seq2seq_run *const o = r->data;

    seq2seq_free(&o->t);
}

const struct golden_kind golden_seq2seq = {
    .name = "seq2seq",
    .size = sizeof(struct seq2seq_run),
    .read = read,
    .bind = bind,
    .forward_alone = true,
    .forward = forward,
    .release = release,
};
