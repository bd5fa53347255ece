/* SPDX-License-Identifier: MIT
 *
 * Golden files of two levels of layers (kind = hier), forward and backward: in.x [B,L,D] in chunks
 * of `chunk` rows. */
#include "golden_inner.h"

#include "variants/model/checkpoint.h"
#include "variants/model/hierarchy.h"

#include <string.h>

struct hier_run {
    struct hierarchy t;
};

static enum status bind(struct run *r, struct err *e)
{
    struct hier_run *const o = r->data;
    struct arena *const a = &r->arena;

    params_place(&r->params, a);
    params_place_packed(&r->params, r->g, r->max.B * r->max.L, a);
    params_place_grad(&r->params, a);
    r->y = arena_f32(a, PART_ACTIVATIONS, r->n_y);
    r->d_x = arena_f32(a, PART_ACTIVATIONS, r->n_y);
    return hierarchy_bind(&o->t, r->g, &r->params, r->max, r->grad, a, e);
}

static enum status read(struct run *r, struct err *e)
{
    struct hier_run *const o = r->data;
    struct config *const c = &r->c;
    const char *const fold = safetensors_meta(r->s, "hier_fold");
    int chunk = 0;
    enum fold how = FOLD_LINEAR;
    enum status st;

    if ((st = golden_part(r, NULL, "DHdF", e)) != OK ||
        (st = golden_size(r, "chunk", GOLDEN_WIDE, &chunk, e)) != OK)
        return st;
    if (r->max.M || r->max.L % chunk || (double)chunk * c->D > GOLDEN_WIDE)
        return safetensors_fail(r->s, e,
                                "seq %d, mem %d in chunks of %d  -> use whole chunks and mem 0",
                                r->max.L, r->max.M, chunk);
    while (how < FOLDS && (!fold || strcmp(fold, fold_name[how]) != 0))
        how++;
    if (how == FOLDS)
        return safetensors_fail(r->s, e, "unknown hier_fold \"%.64s\"  -> use %s or %s",
                                fold ? fold : "", fold_name[FOLD_LINEAR], fold_name[FOLD_FIRST]);
    if ((st = checkpoint_parts(r->s, "param.inner.", c, e)) != OK)
        return st;
    c->wiring = WIRING_POST;
    c->causal = DIRECTION_BOTH;
    c->attn_bias = safetensors_find(r->s, "param.inner.attn.q.bias") != NULL;
    if ((st = checkpoint_check(r->s, c, e)) != OK || (st = golden_inputs(r, c->D, e)) != OK)
        return st;
    return hierarchy_init(&o->t, c, chunk, how == FOLD_LINEAR, &r->params, e);
}

static enum status forward(struct run *r, struct err *e)
{
    struct hier_run *const o = r->data;

    params_pack(&r->params, r->g);
    hierarchy_forward(&o->t, r->g, r->y, r->x->data);
    golden_compare(r, "out.top", o->t.top, r->n_y / (size_t)o->t.chunk);
    (void)e;
    return OK;
}

static void backward(struct run *r)
{
    struct hier_run *const o = r->data;

    hierarchy_backward(&o->t, r->g, r->d_x, r->dy->data);
}

static void release(struct run *r)
{
    struct hier_run *const o = r->data;

    hierarchy_free(&o->t);
}

const struct golden_kind golden_hier = {
    .name = "hier",
    .size = sizeof(struct hier_run),
    .read = read,
    .bind = bind,
    .forward_alone = true,
    .forward = forward,
    .backward = backward,
    .release = release,
};
