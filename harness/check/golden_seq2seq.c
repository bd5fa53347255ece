/* SPDX-License-Identifier: MIT
 *
 * Golden files of an encoder and a decoder (kind = seq2seq), forward and backward: in.src [B,S], of
 * which in.src_len [B] tokens count, and in.tokens, in.targets [B,L]. */
#include "golden_inner.h"

#include "variants/model/checkpoint.h"
#include "variants/model/lm.h"

struct seq2seq_run {
    struct lm lm;
    int S;
    const int32_t *tokens, *targets;
    float *nll;
};

static enum status bind(struct run *r, struct err *e)
{
    struct seq2seq_run *const o = r->data;
    const struct extent max = {r->max.B, r->max.L, o->S};
    enum status st = lm_bind(&o->lm, r->g, MEM_NONE, max, &r->arena, e);

    if (st == OK && r->grad)
        st = lm_bind_grad(&o->lm, r->g, &r->arena, e);
    o->nll = arena_f32(&r->arena, PART_ACTIVATIONS, (size_t)max.B * (size_t)max.L);
    return st;
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
    enum status st;

    if ((st = golden_extent(r, e)) != OK ||
        (st = golden_size(r, "src", GOLDEN_WIDE, &o->S, e)) != OK ||
        (st = checkpoint_seq2seq(r->s, c, e)) != OK)
        return st;
    if (r->max.M)
        return safetensors_fail(r->s, e, "mem %d with an encoder and a decoder  -> use mem 0",
                                r->max.M);
    const double rows = (double)r->max.B * o->S;
    if ((st = golden_few(r, rows * max_int(c->D, c->F) * (c->N + 1 + c->enc_layers), e)) != OK ||
        (st = golden_few(r, rows * c->H * max_int(o->S, r->max.L), e)) != OK)
        return st;
    if ((st = lm_init(&o->lm, c, e)) != OK)
        return st;
    params_rename(&o->lm.params, 0, "encoder.layers.", "enc.");
    params_rename(&o->lm.params, 0, "layers.", "dec.");
    params_rename(&o->lm.params, 0, ".read.", ".cross.");
    r->weights = &o->lm.params;
    (void)safetensors_meta(r->s, "total_nll"); /* compared with the losses */
    o->lm.source = numbers(r, "in.src", o->S, 0, c->V - 1, &st, e);
    o->lm.source_seen = numbers(r, "in.src_len", 1, 1, o->S, &st, e);
    o->tokens = numbers(r, "in.tokens", r->max.L, 0, c->V - 1, &st, e);
    o->targets = numbers(r, "in.targets", r->max.L, 0, c->V - 1, &st, e);
    return st;
}

static enum status forward(struct run *r, struct err *e)
{
    struct seq2seq_run *const o = r->data;
    struct lm *const m = &o->lm;
    const int B = r->max.B, L = r->max.L;
    const size_t rows = (size_t)B * (size_t)L;
    struct drive_result enc;

    lm_build_tables(m, r->g);
    lm_forward(m, r->g, o->tokens, B, L, L, o->targets, o->nll);
    CHECK(lm_result(m, 0, &enc));
    golden_compare(r, "out.enc", enc.real, enc.n);
    golden_compare(r, "out.logits", m->logits, rows * (size_t)r->c.V);
    golden_compare(r, "out.nll", o->nll, rows);
    golden_compare_total(r, o->nll, rows);
    if (!r->grad)
        return OK;
    params_zero_grad(&m->params);
    lm_backward(m, r->g, o->tokens, o->targets, B, L);
    golden_compare_grad(r, &m->params);
    (void)e;
    return OK;
}

static void release(struct run *r)
{
    struct seq2seq_run *const o = r->data;

    lm_free(&o->lm);
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
