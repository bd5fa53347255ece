/* SPDX-License-Identifier: MIT
 *
 * Golden files of the map before q, k and v alone (kind = dextra), forward and backward. */
#include "reader.h"

#include "variants/model/checkpoint/checkpoint.h"
#include "variants/parts/dextra.h"

struct map_run {
    int rows;
    float *x, *d_y, *more;
};

static enum status bind(struct run *r, struct err *e)
{
    struct map_run *o = r->data;
    struct arena *a = &r->arena;
    const struct config *c = &r->c;

    golden_bind_part(r, c->qkv_map->work(c, 0, o->rows)); /* more than y needs */
    o->x = arena_f32(a, PART_ACTIVATIONS, r->x->n);
    o->d_y = arena_f32(a, PART_ACTIVATIONS, r->n_y);
    o->more = arena_f32(a, PART_SCRATCH, c->qkv_map->work_grad(c, 0, o->rows));
    return OK;
}

/* Groups and widths are those of the weights [groups, width/groups, ..]; the last one is d_out
 * wide. */
static void read_shapes(const struct run *r, struct dextra *own, int depth)
{
    char name[TENSOR_NAME];

    for (int i = 0; i < depth; i++) {
        snprintf(name, sizeof(name), "param.dextra.glt.%d.weight", i);
        const struct tensor *const t = safetensors_find(r->s, name);
        if (!t || t->rank != 3 || t->shape[0] < 1 ||
            (int64_t)t->shape[0] * t->shape[1] > UINT16_MAX)
            continue;
        own->given[i].groups = (uint16_t)t->shape[0];
        own->given[i].width = (uint16_t)(t->shape[0] * t->shape[1]);
    }
}

static enum status read(struct run *r, struct err *e)
{
    struct map_run *o = r->data;
    struct config *c = &r->c;
    double width = 0;
    int depth = 0;

    TRY(golden_part(r, NULL, "D", e));
    TRY(golden_size(r, "d_out", GOLDEN_WIDE, &c->dh, e));
    TRY(golden_size(r, "depth", MAX_DEXTRA_DEPTH, &depth, e));
    TRY(safetensors_real(r->s, "width_mult", 1, &width, e));
    TRY(golden_eps(r, e));
    TRY(checkpoint_map(r->s, c, e));
    if (!c->qkv_map || !(width >= 1 && width <= MAX_DEXTRA_WIDTH))
        return safetensors_fail(
            r->s, e,
            "dextra \"%.64s\" of width_mult %g is not a map before q, k and v  -> "
            "use paper or code, and a width_mult from 1 to %d",
            safetensors_meta(r->s, "dextra") ? safetensors_meta(r->s, "dextra") : "", width,
            (int)MAX_DEXTRA_WIDTH);
    struct dextra *const numbers = (void *)c->numbers[SLOT_QKV_MAP].bytes;
    numbers->depth[0] = numbers->depth[1] = depth;
    numbers->width[0] = numbers->width[1] = (float)width;
    read_shapes(r, numbers, depth);
    TRY(checkpoint_check(r->s, c, e));
    o->rows = r->max.B * r->max.L;
    c->qkv_map->params(c, 0, "", &r->params);
    return golden_inputs(r, c->qkv_map->width(c), e);
}

static enum status forward(struct run *r, struct err *e)
{
    const struct map_run *o = r->data;

    memcpy(o->x, r->x->data, r->x->n * sizeof(float));
    r->c.qkv_map->forward(r->g, &r->c, 0, r->params.v, o->x, o->rows, r->y);
    return OK;
}

static void backward(struct run *r)
{
    const struct map_run *o = r->data;

    memcpy(o->d_y, r->dy->data, r->n_y * sizeof(float));
    r->c.qkv_map->backward(r->g, &r->c, 0, r->params.v, r->d_x, o->d_y, o->x, o->rows, r->y,
                           o->more);
}

const struct golden_kind golden_map = {
    .name = "dextra",
    .size = sizeof(struct map_run),
    MEMBERS(, read, bind, forward, backward),
};
