/* SPDX-License-Identifier: MIT
 *
 * Tables of biases by distance: their storage. Each scheme fills its own. */
#include "pos_bias.h"

size_t bias_floats(const struct config *c, int R)
{
    return (size_t)c->H * (size_t)(c->causal ? R : 2 * R - 1);
}

void bias_reserve_rows(const struct pos_call *t, int R)
{
    struct attn *const a = t->a;

    a->R = R;
    a->Rf = t->c->causal ? 0 : R - 1;
    a->bias_head = a->R + a->Rf;
    a->bias = arena_f32(t->arena, PART_REL_POS, bias_floats(t->c, R));
}

void bias_reserve(const struct pos_call *t) { bias_reserve_rows(t, t->K); }

float *bias_of(const struct attn *a, int h)
{
    return (float *)a->bias + h * a->bias_head + a->R - 1;
}

void bias_terms_grad(const struct pos_call *t)
{
    memset(t->tables, 0, sizeof(float) * (size_t)t->a->H * (size_t)t->a->bias_head);
    t->d->d_bias = t->tables;
}

const float *bias_grad_of(const struct attn *a, const struct attn_grad *d, int h)
{
    return d->d_bias + h * a->bias_head + a->R - 1;
}
