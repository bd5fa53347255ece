/* SPDX-License-Identifier: MIT
 *
 * Golden files of one layer (kind = layer), forward and backward: its sub-layers with their norms
 * and sums, without embedding, context and output. */
#include "reader.h"

enum status golden_bind_layers(struct run *r, struct err *e)
{
    return golden_bind_sublayer(r, MEM_NONE, e);
}

void golden_backward_layers(struct run *r)
{
    memcpy(r->d_x, r->dy->data, r->dy->n * sizeof(float));
    sublayers_backward(&r->sublayers, r->g, r->d_x, r->max.B, r->max.L);
}

static enum status read(struct run *r, struct err *e)
{
    TRY(golden_config(r, e));
    TRY(golden_extent(r, e));
    TRY(golden_mask_random(r, r->max.L, e));
    if (r->max.M || r->c.N != 1 || *r->c.order || r->c.pos->model_params)
        return safetensors_fail(r->s, e,
                                "is not one layer without context  -> use n_layer 1 and mem 0");
    TRY(golden_inputs(r, r->c.D, e));
    sublayers_init(&r->sublayers, &r->c, &r->params, 0);
    params_rename(&r->params, 0, "layers.0.", "");
    return OK;
}

static enum status forward(struct run *r, struct err *e)
{
    float *const x = r->grad ? sublayers_input(&r->sublayers, NULL) : r->room;

    golden_tables(r, r->max.L);
    memcpy(x, r->x->data, r->n_y * sizeof(float));
    sublayers_forward(&r->sublayers, r->g, r->y, x, r->max.B, r->max.L);
    for (int i = 0; r->grad && i < r->sublayers.n; i++) /* else layers share what they show */
        golden_shown(r, &r->sublayers.at[i], &r->sublayers.work[i]);
    return OK;
}

const struct golden_kind golden_layer = {
    .name = "layer",
    .read = read,
    .bind = golden_bind_layers,
    .forward = forward,
    .backward = golden_backward_layers,
};
