/* SPDX-License-Identifier: MIT
 *
 * Golden files of an encoder and a decoder (kind = seq2seq), forward and backward: in.src [B,S], of
 * which in.src_len [B] tokens count, and in.tokens, in.targets [B,L]. */
#include "reader.h"

#include "variants/model/checkpoint/checkpoint.h"
#include "variants/model/lm/lm.h"

struct seq2seq_run {
    struct lm lm;
    int S;
    const int32_t *tokens, *targets;
    float *nll;
};

/* n_layer layers in the encoder, dec_layers in the decoder, norms after sums, sources of different
 * lengths. */
static enum status read_config(struct run *r, struct err *e)
{
    enum { MOST_LAYERS = 64 };
    const struct safetensors *const s = r->s;
    struct config *const c = &r->c;
    const char *const word = safetensors_meta(s, "pos");
    const struct pos *const pos = pos_find(word ? word : "none");
    int n[7] = {0}, blends = 0;
    double scale = 0, emb_scale = 0, ln_eps = 0;
    static const char *const sizes[] = {"d_model", "n_head",  "d_head",    "d_inner",
                                        "vocab",   "n_layer", "dec_layers"};

    for (int i = 0; i < (int)ARRAY_LEN(sizes); i++)
        TRY(golden_size(r, sizes[i], i < 5 ? GOLDEN_WIDE : MOST_LAYERS, &n[i], e));
    TRY(safetensors_real(s, "scale", 1, &scale, e));
    TRY(safetensors_real(s, "emb_scale", 1, &emb_scale, e));
    TRY(safetensors_real(s, "ln_eps", 1e-5, &ln_eps, e));
    TRY(safetensors_int(s, "transparent", 0, 0, 1, &blends, e));
    if (!pos || (pos != pos_find("none") && !(pos->embed && pos->sinusoids && !pos->model_params)))
        return safetensors_fail(s, e, "pos \"%.64s\"  -> use sinusoid, none", word ? word : "");
    *c = config_default(variants[0], n[0], n[1], n[2], n[3], n[6], n[4]);
    TRY(checkpoint_parts(s, "param.dec.0.", c, e));
    TRY(safetensors_int(s, "window", 0, 0, GOLDEN_WIDE, &c->window, e));
    c->pos = pos;
    c->wiring = WIRING_POST;
    c->scale = (float)scale;
    c->emb_scale = (float)emb_scale;
    c->ln_eps = (float)ln_eps;
    c->attn_bias = safetensors_find(s, "param.dec.0.attn.q.bias") != NULL;
    c->enc_layers = n[5];
    c->enc_padded = true;
    c->transparent = blends ? TRANSPARENT_TOP : TRANSPARENT_NONE;
    return checkpoint_check(s, c, e);
}

static enum status bind(struct run *r, struct err *e)
{
    struct seq2seq_run *const o = r->data;
    const struct extent max = {r->max.B, r->max.L, o->S};

    TRY(lm_bind(&o->lm, r->g, MEM_NONE, max, &r->arena, e));
    r->grad = r->grad && sublayers_can_grad(&o->lm.sublayers, r->g, NULL) == OK;
    if (r->grad)
        TRY(lm_bind_grad(&o->lm, r->g, &r->arena, e));
    o->nll = arena_f32(&r->arena, PART_ACTIVATIONS, (size_t)max.B * (size_t)max.L);
    return OK;
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
    const struct config *const c = &r->c;
    enum status st = OK;

    TRY(golden_extent(r, e));
    TRY(golden_size(r, "src", GOLDEN_WIDE, &o->S, e));
    TRY(read_config(r, e));
    if (r->max.M)
        return safetensors_fail(r->s, e, "mem %d with an encoder and a decoder  -> use mem 0",
                                r->max.M);
    const double rows = (double)r->max.B * o->S;
    TRY(golden_few(r, rows * max_int(c->D, c->F) * (c->N + 1 + c->enc_layers), e));
    TRY(golden_few(r, rows * c->H * max_int(o->S, r->max.L), e));
    TRY(lm_init(&o->lm, c, e));
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
    MEMBERS(, read, bind, forward, release),
};
