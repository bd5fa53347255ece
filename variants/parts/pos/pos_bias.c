/* SPDX-License-Identifier: MIT
 *
 * Tables of biases by distance: their storage. Each scheme fills its own. */
#include "pos_bias.h"

#include <string.h>

size_t bias_floats(const struct config *c, int R)
{
    return (size_t)c->H * (size_t)(c->causal ? R : 2 * R - 1);
}

void bias_reserve(const struct config *c, int R, struct arena *arena, struct attn *a)
{
    a->R = R;
    a->Rf = c->causal ? 0 : R - 1;
    a->bias_head = a->R + a->Rf;
    a->bias = arena_f32(arena, PART_REL_POS, bias_floats(c, R));
}

float *bias_of(const struct attn *a, int h)
{
    return (float *)a->bias + h * a->bias_head + a->R - 1;
}

void bias_grad_clear(const struct attn *a, float *tables, struct attn_grad *d)
{
    memset(tables, 0, sizeof(float) * (size_t)a->H * (size_t)a->bias_head);
    d->d_bias = tables;
}

const float *bias_grad_of(const struct attn *a, const struct attn_grad *d, int h)
{
    return d->d_bias + h * a->bias_head + a->R - 1;
}
