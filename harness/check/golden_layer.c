/* SPDX-License-Identifier: MIT
 *
 * Golden files of one layer (kind = layer), forward and backward: its sub-layers with their norms
 * and sums, without embedding, context and output. */
#include "golden_inner.h"

#include <stdio.h>
#include <string.h>

static const char prefix[] = "layers.0.";

static bool file_name(const struct run *r, const char *name, char out[GOLDEN_NAME])
{
    CHECK(strncmp(name, prefix, strlen(prefix)) == 0);
    snprintf(out, GOLDEN_NAME, "%s", name + strlen(prefix));
    (void)r;
    return true;
}

static enum status read(struct run *r, struct err *e)
{
    enum status st;

    if ((st = golden_config(r, e)) != OK || (st = golden_extent(r, e)) != OK ||
        (st = golden_mask_random(r, r->max.L, e)) != OK)
        return st;
    if (r->max.M || r->c.N != 1 || *r->c.order || r->c.pos->model_params)
        return safetensors_fail(r->s, e,
                                "is not one layer without context  -> use n_layer 1 and mem 0");
    if ((st = golden_inputs(r, r->c.D, e)) != OK)
        return st;
    return sublayers_init(&r->sublayers, &r->c, &r->params, 0, e);
}

static enum status forward(struct run *r, struct err *e)
{
    float *const x = r->grad ? sublayers_input(&r->sublayers, NULL) : r->room;

    golden_tables(r, r->max.L);
    memcpy(x, r->x->data, r->n_y * sizeof(float));
    sublayers_forward(&r->sublayers, r->g, r->y, x, r->max.B, r->max.L);
    for (int i = 0; r->grad && i < r->sublayers.n; i++) /* else layers share what they show */
        golden_shown(r, &r->sublayers.at[i], &r->sublayers.work[i]);
    (void)e;
    return OK;
}

const struct golden_kind golden_layer = {
    .name = "layer",
    .read = read,
    .bind = golden_bind_layers,
    .file_name = file_name,
    .forward = forward,
    .backward = golden_backward_layers,
};
