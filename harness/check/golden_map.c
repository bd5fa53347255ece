/* SPDX-License-Identifier: MIT
 *
 * Golden files of the map in front of q, k and v alone (kind = dextra), forward and backward. */
#include "golden_inner.h"

#include "variants/model/checkpoint.h"
#include "variants/parts/dextra.h"

#include <string.h>

enum { WIDE = 1 << 16, DEEP = 30 };

struct map_run {
    struct config c; /* what the map asks of a model */
    int rows, width;
    struct params params;
    struct arena arena;
    float *x, *d_x, *d_y, *work, *more;
};

static enum status bind(void *arg, const struct engine *g, struct err *e)
{
    struct map_run *o = arg;
    struct arena *a = &o->arena;
    const struct config *c = &o->c;
    const size_t n = (size_t)o->rows * (size_t)c->D;

    params_place(&o->params, a);
    params_place_grad(&o->params, a);
    o->x = arena_f32(a, PART_ACTIVATIONS, n);
    o->d_x = arena_f32(a, PART_ACTIVATIONS, n);
    o->d_y = arena_f32(a, PART_ACTIVATIONS, (size_t)o->rows * (size_t)o->width);
    o->work = arena_f32(a, PART_ACTIVATIONS, c->qkv_map->work(c, 0, o->rows));
    o->more = arena_f32(a, PART_SCRATCH, c->qkv_map->work_grad(c, 0, o->rows));
    (void)g;
    (void)e;
    return OK;
}

static enum status read_map(struct run *r, struct map_run *o, int *B, int *L, struct err *e)
{
    struct config *c = &o->c;
    double eps = 0, width = 0;
    int depth = 0;
    enum status st;

    *c = (struct config){.N = 1, .H = 1};
    if ((st = golden_whole(r, "batch", B, e)) != OK || (st = golden_whole(r, "seq", L, e)) != OK ||
        (st = safetensors_int(r->s, "d_model", 0, 1, WIDE, &c->D, e)) != OK ||
        (st = safetensors_int(r->s, "d_out", 0, 1, WIDE, &c->dh, e)) != OK ||
        (st = safetensors_int(r->s, "depth", 0, 1, DEEP, &depth, e)) != OK ||
        (st = safetensors_real(r->s, "width_mult", 1, &width, e)) != OK ||
        (st = safetensors_real(r->s, "ln_eps", 1e-5, &eps, e)) != OK ||
        (st = checkpoint_map(r->s, c, e)) != OK)
        return st;
    if (!c->qkv_map || !(width > 0 && width < WIDE))
        return fail(e, E_IO, "%s: describes no map in front of q, k and v", r->s->path);
    c->ln_eps = (float)eps;
    struct dextra *const own = (void *)c->own[SLOT_QKV_MAP].bytes;
    own->depth[0] = own->depth[1] = depth;
    own->width[0] = own->width[1] = (float)width;
    o->rows = *B * *L;
    o->width = c->qkv_map->width(c);
    c->qkv_map->params(c, 0, "", &o->params);
    return OK;
}

static enum status run_map(struct run *r, struct map_run *o, struct err *e)
{
    const struct config *c = &o->c;
    const struct tensor *dy = NULL;
    int B = 0, L = 0;
    enum status st = read_map(r, o, &B, &L, e);

    if (st != OK)
        return st;
    const size_t n = (size_t)o->rows * (size_t)c->D, n_y = (size_t)o->rows * (size_t)o->width;
    const struct tensor *x = golden_need(r, "in.x", DTYPE_F32, n, &st, e);
    if (golden_has_grad(r))
        dy = golden_need(r, "in.dy", DTYPE_F32, n_y, &st, e);
    if (st != OK)
        return st;
    if ((st = golden_place(r, bind, o, &o->arena, &o->params, e)) != OK)
        return st;
    params_zero_grad(&o->params);
    memcpy(o->x, x->data, n * sizeof(float));
    c->qkv_map->forward(r->g, c, 0, o->params.v, o->x, o->rows, o->work);
    golden_compare(r, "out.y", o->work, n_y);
    if (!dy)
        return OK;
    memcpy(o->d_y, dy->data, n_y * sizeof(float));
    c->qkv_map->backward(r->g, c, 0, o->params.v, o->d_x, o->d_y, o->x, o->rows, o->work, o->more);
    golden_compare(r, GRADIENT "x", o->d_x, n);
    golden_compare_grad(r, &o->params);
    return OK;
}

enum status golden_map(struct run *r, struct err *e)
{
    struct map_run o = {0};
    const enum status st = run_map(r, &o, e);

    params_free(&o.params);
    arena_release(&o.arena);
    return st;
}
