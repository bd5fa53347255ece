/* SPDX-License-Identifier: MIT
 *
 * Golden files of parts that stand alone: a norm (kind = norm) and a feed-forward network
 * (kind = ffn), forward and backward. */
#include "golden_inner.h"

#include "variants/model/checkpoint.h"
#include "variants/parts/dropout.h"
#include "variants/parts/moe.h"
#include "variants/parts/norm.h"

#include <string.h>

enum { WIDE = 1 << 16 };

struct part_run {
    struct config c; /* what the part asks of a model */
    int rows;
    bool grad;
    struct params params;
    struct arena arena;
    float *x, *y, *d_x, *work, *more, *stats;
};

/* ---- what the file describes -------------------------------------------------------------- */

/* A feed-forward network where the file says one, else a norm. */
static enum status read_part(struct run *r, struct part_run *o, bool norm, struct err *e)
{
    struct config *c = &o->c;
    const char *const key = norm ? "norm_kind" : "ffn";
    int D = 0;
    struct err why;
    double eps;
    enum status st;

    if ((st = safetensors_int(r->s, "d_model", 0, 1, WIDE, &D, e)) != OK)
        return st;
    *c = config_default(variants[0], D, 1, D, 1, 1, 0);
    c->ffn = NULL; /* the file's */
    if ((st = safetensors_int(r->s, "d_inner", 1, 1, WIDE, &c->F, e)) != OK ||
        (st = safetensors_real(r->s, "ln_eps", 1e-5, &eps, e)) != OK ||
        (st = checkpoint_parts(r->s, "param.", c, e)) != OK)
        return st;
    c->ln_eps = (float)eps;
    if (!safetensors_meta(r->s, key) || (!norm && !c->ffn))
        return fail(e, E_IO, "%s: no %s  -> is it a golden file?", r->s->path, key);
    if (config_own_check(c, &why) != OK)
        return fail(e, E_IO, "%s: %s", r->s->path, why.msg);
    if (norm)
        norm_params(c, "", "norm", &o->params);
    else
        c->ffn->params(c, "ff.", &o->params);
    return OK;
}

/* ---- the run ------------------------------------------------------------------------------ */

static enum status bind(void *arg, const struct engine *g, struct err *e)
{
    struct part_run *o = arg;
    struct arena *a = &o->arena;
    const struct config *c = &o->c;
    const size_t n = (size_t)o->rows * (size_t)c->D;

    params_place(&o->params, a);
    params_place_grad(&o->params, a);
    o->x = arena_f32(a, PART_ACTIVATIONS, n);
    o->y = arena_f32(a, PART_ACTIVATIONS, n);
    o->d_x = arena_f32(a, PART_ACTIVATIONS, n);
    o->stats = arena_f32(a, PART_SCRATCH, NORM_STATS * (size_t)o->rows);
    if (c->ffn) {
        o->work = arena_f32(a, PART_ACTIVATIONS, c->ffn->work(c, o->rows, true));
        o->more = arena_f32(a, PART_SCRATCH, c->ffn->work_grad(c, o->rows));
    }
    (void)g;
    (void)e;
    return OK;
}

static void run_norm(struct run *r, struct part_run *o, const float *dy)
{
    const struct config *c = &o->c;

    norm_apply(r->g, c, o->params.v, o->y, o->x, NULL, o->rows);
    if (dy)
        norm_backward(r->g, c, o->params.v, o->d_x, dy, o->x, o->stats, o->rows);
}

static void run_ffn(struct run *r, struct part_run *o, const float *dy)
{
    const struct config *c = &o->c;
    const struct dropout none = {0};

    c->ffn->forward(r->g, c, o->params.v, o->y, o->x, o->rows, o->work, true,
                    (struct act){.y = o->y}, &none);
    if (dy)
        c->ffn->backward(r->g, c, o->params.v, o->d_x, dy, o->x, o->rows, o->work, o->more, &none);
    if (!c->ffn->aux)
        return;
    const float aux = (float)c->ffn->aux(c, o->rows, o->work);
    golden_compare(r, "out.aux", &aux, 1);
    golden_compare_whole(r, "out.route", moe_work_of(c, o->rows, o->work).route,
                         (size_t)o->rows * (size_t)moe_of(c)->k);
}

static enum status run_part(struct run *r, struct part_run *o, struct err *e)
{
    const bool norm = strcmp(safetensors_meta(r->s, "kind"), "norm") == 0;
    int B = 0, L = 0;
    enum status st;

    if ((st = golden_whole(r, "batch", &B, e)) != OK ||
        (st = golden_whole(r, "seq", &L, e)) != OK || (st = read_part(r, o, norm, e)) != OK)
        return st;
    const size_t n = (size_t)B * (size_t)L * (size_t)o->c.D;
    const struct tensor *dy = NULL, *x = golden_need(r, "in.x", DTYPE_F32, n, &st, e);
    if (golden_has_grad(r))
        dy = golden_need(r, "in.dy", DTYPE_F32, n, &st, e);
    if (st != OK)
        return st;
    o->rows = B * L;
    if ((st = golden_place(r, bind, o, &o->arena, &o->params, e)) != OK)
        return st;
    params_zero_grad(&o->params);
    memcpy(o->x, x->data, n * sizeof(float));
    (norm ? run_norm : run_ffn)(r, o, dy ? dy->data : NULL);
    golden_compare(r, "out.y", o->y, n);
    if (dy) {
        golden_compare(r, GRADIENT "x", o->d_x, n);
        golden_compare_grad(r, &o->params);
    }
    return OK;
}

enum status golden_part(struct run *r, struct err *e)
{
    struct part_run o = {0};
    const enum status st = run_part(r, &o, e);

    params_free(&o.params);
    arena_release(&o.arena);
    return st;
}
