/* SPDX-License-Identifier: MIT
 *
 * Shaw's relative position representations: the learned tables are used directly as the tables of
 * `struct attn`. rel_rows = clip+1 is the causal table, 2*clip+1 the full one, whose last `clip`
 * rows are future distances. Either table may be absent; both may be per head. */
#include "variants/parts/parts.h"

static int add_table(const struct config *c, const char *prefix, const char *name, struct params *p)
{
    const int per_head[] = {c->H, c->rel_rows, c->dh};

    return params_add(p, INIT_TABLE, 0, c->rel_per_head ? 3 : 2, per_head + !c->rel_per_head,
                      "%sattn.%s", prefix, name);
}

static void shaw_params(const struct config *c, const char *prefix, struct params *p)
{
    if (c->rel_k)
        add_table(c, prefix, "rel_k", p);
    if (c->rel_v)
        add_table(c, prefix, "rel_v", p);
}

/* Weights are read in place. */
static void shaw_reserve(const struct pos_call *t)
{
    const struct config *const c = t->c;
    const struct param *layer = t->layer;
    struct attn *const a = t->a;

    a->R = c->clip + 1;
    a->Rf = c->rel_rows - a->R;
    a->rel_head = c->rel_per_head ? (ptrdiff_t)c->rel_rows * c->dh : 0;
    if (c->rel_k)
        a->rel_k = (layer++)->data;
    if (c->rel_v)
        a->rel_v = layer->data;
}

/* The tables' gradients are the weights' gradients; resizing cut the farthest rows off. */
static void shaw_terms_grad(const struct pos_call *t)
{
    const struct config *const c = t->c;
    const struct param *layer = t->layer;
    const ptrdiff_t cut = (ptrdiff_t)(c->clip + 1 - t->a->R) * c->dh;

    if (c->rel_k)
        t->d->d_rel_k = (layer++)->grad + cut;
    if (c->rel_v)
        t->d->d_rel_v = layer->grad + cut;
}

const struct pos pos_shaw = {
    .name = "shaw",
    .clips = true,
    .layer_params = shaw_params,
    .reserve = shaw_reserve,
    .terms_grad = shaw_terms_grad,
};
