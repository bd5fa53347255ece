/* SPDX-License-Identifier: MIT
 *
 * Golden files of one layer (kind = layer), forward and backward: its sub-layers with their norms
 * and sums, without embedding, context and output. */
#include "golden_inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "layers.0.";

struct layer_run {
    struct params file; /* those of the layer, under the file's names, without a prefix */
};

static void name_params(const struct run *r, struct layer_run *o)
{
    o->file.n = r->params.n;
    for (int i = 0; i < r->params.n; i++) {
        const struct param *const from = &r->params.v[i];
        CHECK(strncmp(from->name, prefix, strlen(prefix)) == 0);
        o->file.v[i] = *from;
        snprintf(o->file.v[i].name, sizeof(from->name), "%s", from->name + strlen(prefix));
    }
}

static enum status bind(struct run *r, struct err *e)
{
    const enum status st = golden_bind_sublayer(r, MEM_NONE, e);

    if (st == OK)
        name_params(r, r->data);
    return st;
}

static enum status read(struct run *r, struct err *e)
{
    struct layer_run *const o = r->data;
    enum status st;

    if ((st = golden_config(r, e)) != OK || (st = golden_extent(r, e)) != OK ||
        (st = golden_mask_random(r, r->max.L, e)) != OK)
        return st;
    if (r->max.M || r->c.N != 1 || *r->c.order || r->c.pos->model_params)
        return safetensors_fail(r->s, e,
                                "is not one layer without context  -> use n_layer 1 and mem 0");
    if ((st = golden_inputs(r, r->c.D, e)) != OK ||
        (st = sublayers_init(&r->sublayers, &r->c, &r->params, 0, e)) != OK)
        return st;
    o->file.v = calloc((size_t)r->params.n, sizeof(*o->file.v));
    if (!o->file.v)
        return fail(e, E_NOMEM, "no memory for %d tensors", r->params.n);
    r->weights = &o->file;
    return OK;
}

static enum status forward(struct run *r, struct err *e)
{
    float *const x = r->grad ? sublayers_input(&r->sublayers, NULL) : r->room;

    if (r->c.pos->pos_encoding)
        r->c.pos->pos_encoding(&r->c, 0, r->max.L, r->sublayers.pos_encoding);
    sublayers_build_tables(&r->sublayers, r->g);
    memcpy(x, r->x->data, r->n_y * sizeof(float));
    sublayers_forward(&r->sublayers, r->g, r->y, x, r->max.B, r->max.L);
    for (int i = 0; r->grad && i < r->sublayers.n; i++) /* else layers share what they show */
        golden_shown(r, &r->sublayers.at[i], &r->sublayers.work[i]);
    (void)e;
    return OK;
}

static void backward(struct run *r)
{
    memcpy(r->d_x, r->dy->data, r->n_y * sizeof(float));
    sublayers_backward(&r->sublayers, r->g, r->d_x, r->max.B, r->max.L);
}

static void release(struct run *r)
{
    struct layer_run *const o = r->data;

    free(o->file.v);
}

const struct golden_kind golden_layer = {
    .name = "layer",
    .size = sizeof(struct layer_run),
    .read = read,
    .bind = bind,
    .forward = forward,
    .backward = backward,
    .release = release,
};
