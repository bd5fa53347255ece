/* SPDX-License-Identifier: MIT
 *
 * Golden files of single parts: a norm (kind = norm) and a feed-forward network (kind = ffn),
 * forward and backward. */
#include "golden_inner.h"

#include "variants/model/checkpoint.h"
#include "variants/parts/dropout.h"
#include "variants/parts/ffn/moe.h"
#include "variants/parts/norm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NORM "norm"

struct part_run {
    int rows;
    float *x, *work, *more, *stats;
};

/* ---- what the file describes -------------------------------------------------------------- */

/* The config of a part, whose name is under `key`. */
static enum status read_part(struct run *r, const char *key, struct err *e)
{
    struct part_run *o = r->own;
    struct config *c = &r->c;
    int D = 0;
    double eps;
    enum status st;

    if ((st = golden_extent(r, e)) != OK ||
        (st = golden_size(r, "d_model", GOLDEN_WIDE, &D, e)) != OK)
        return st;
    *c = config_default(variants[0], D, 1, D, 1, 1, 0);
    c->pos = pos_find("none");
    c->ffn = NULL; /* the file's */
    if ((st = safetensors_int(r->s, "d_inner", 1, 0, GOLDEN_WIDE, &c->F, e)) != OK ||
        (st = safetensors_real(r->s, "ln_eps", 1e-5, &eps, e)) != OK ||
        (st = golden_whole(r, "vocab", &c->V, e)) != OK ||
        (st = checkpoint_parts(r->s, "param.", c, e)) != OK)
        return st;
    c->ln_eps = (float)eps;
    if (!safetensors_meta(r->s, key))
        return safetensors_fail(r->s, e, "metadata %s is missing  -> give a golden file", key);
    if ((st = checkpoint_check(r->s, c, e)) != OK)
        return st;
    o->rows = r->max.B * r->max.L;
    return golden_inputs(r, c->D, e);
}

static enum status read_norm(struct run *r, struct err *e)
{
    const enum status st = read_part(r, "norm_kind", e);

    if (st == OK)
        norm_params(&r->c, "", NORM, &r->params);
    return st;
}

static enum status read_ffn(struct run *r, struct err *e)
{
    struct config *c = &r->c;
    const enum status st = read_part(r, "ffn", e);

    if (st != OK)
        return st;
    if (!c->ffn)
        return safetensors_fail(r->s, e, "metadata ffn is missing  -> give a golden file");
    if (c->F < 1 && !c->ffn->no_hidden)
        return safetensors_fail(
            r->s, e, "metadata d_inner is 0  -> give the number of hidden units of ffn %s",
            c->ffn->name);
    c->ffn->params(c, "ff.", &r->params);
    return OK;
}

/* ---- the run ------------------------------------------------------------------------------ */

static enum status bind(struct run *r, struct err *e)
{
    struct part_run *o = r->own;
    struct arena *a = &r->arena;
    const struct config *c = &r->c;
    const size_t n = r->x->n;

    params_place(&r->params, a);
    params_place_grad(&r->params, a);
    o->x = arena_f32(a, PART_ACTIVATIONS, n);
    r->y = arena_f32(a, PART_ACTIVATIONS, n);
    r->d_x = arena_f32(a, PART_ACTIVATIONS, n);
    o->stats = arena_f32(a, PART_SCRATCH, NORM_STATS * (size_t)o->rows);
    if (c->ffn) {
        o->work = arena_f32(a, PART_ACTIVATIONS, c->ffn->work(c, o->rows, true));
        o->more = arena_f32(a, PART_SCRATCH, c->ffn->work_grad(c, o->rows));
    }
    (void)e;
    return OK;
}

static enum status norm_forward(struct run *r, struct err *e)
{
    const struct part_run *o = r->own;

    memcpy(o->x, r->x->data, r->x->n * sizeof(float));
    const enum status st = golden_buffers(r, &r->params, e);
    norm_apply(r->g, &r->c, r->params.v, r->y, o->x, NULL, o->rows);
    return st;
}

static void norm_grad(struct run *r)
{
    const struct part_run *o = r->own;

    norm_backward(r->g, &r->c, r->params.v, r->d_x, r->dy->data, o->x, o->stats, o->rows, o->rows);
}

/* After the backward pass. */
static void norm_buffers(struct run *r)
{
    for (int i = 0; i < r->params.n; i++) {
        const struct param *const w = &r->params.v[i];
        char name[96];
        for (size_t k = 0; w->buffer && k < w->n; k++)
            w->data[k] += w->grad[k];
        snprintf(name, sizeof(name), "out.%s", w->name + strlen(NORM "."));
        if (w->buffer)
            golden_compare(r, name, w->data, w->n);
    }
}

static const struct dropout none = {0};

/* The tokens of the rows, for a network that they choose something of. */
static enum status read_tokens(struct run *r, struct err *e)
{
    const struct part_run *o = r->own;
    enum status st = OK;

    if (!r->c.ffn->read_tokens)
        return OK;
    const struct tensor *const t = golden_need(r, "in.tokens", DTYPE_I32, (size_t)o->rows, &st, e);
    if (st != OK)
        return st;
    for (int i = 0; i < o->rows; i++)
        if (((const int32_t *)t->data)[i] < 0 || ((const int32_t *)t->data)[i] >= r->c.V)
            return safetensors_fail(r->s, e, "a token is outside the vocabulary of %d", r->c.V);
    r->c.ffn->read_tokens(&r->c, r->params.v, t->data, o->rows, o->work);
    return OK;
}

/* A table that balances tokens of these frequencies. */
static enum status compare_table(struct run *r, struct err *e)
{
    const struct tensor *const freq = safetensors_find(r->s, "in.freq");
    enum status st = OK;

    if (!freq || !r->c.ffn->read_tokens)
        return OK;
    golden_need(r, "in.freq", DTYPE_I32, (size_t)r->c.V, &st, e);
    if (st != OK)
        return st;
    int32_t *const table = calloc(freq->n + 1, sizeof(*table));
    NEED(table);
    moe_balance(freq->data, r->c.V, moe_of(&r->c)->experts, table);
    golden_compare_whole(r, "out.table", table, freq->n);
    free(table);
    return OK;
}

static enum status ffn_forward(struct run *r, struct err *e)
{
    const struct part_run *o = r->own;
    const struct config *c = &r->c;

    memcpy(o->x, r->x->data, r->x->n * sizeof(float));
    enum status st = golden_buffers(r, &r->params, e);
    if (st == OK)
        st = read_tokens(r, e);
    if (st != OK)
        return st;
    c->ffn->forward(r->g, c, r->params.v, r->y, o->x, o->rows, o->work, true,
                    (struct act){.y = r->y}, &none);
    if (c->ffn->aux) {
        const float aux = (float)c->ffn->aux(c, o->rows, o->work);
        golden_compare(r, "out.aux", &aux, 1);
    }
    if (c->ffn->chose) {
        const struct ffn_choice chosen = c->ffn->chose(c, o->rows, o->work);
        golden_compare_whole(r, chosen.name, chosen.at, chosen.n);
    }
    return compare_table(r, e);
}

static void ffn_backward(struct run *r)
{
    const struct part_run *o = r->own;

    r->c.ffn->backward(r->g, &r->c, r->params.v, r->d_x, r->dy->data, o->x, o->rows, o->work,
                       o->more, &none);
}

const struct golden_kind golden_norm = {
    .name = "norm",
    .size = sizeof(struct part_run),
    .read = read_norm,
    .bind = bind,
    .forward = norm_forward,
    .backward = norm_grad,
    .finish = norm_buffers,
};

const struct golden_kind golden_ffn = {
    .name = "ffn",
    .size = sizeof(struct part_run),
    .read = read_ffn,
    .bind = bind,
    .forward = ffn_forward,
    .backward = ffn_backward,
};
