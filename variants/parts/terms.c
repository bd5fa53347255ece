/* SPDX-License-Identifier: MIT
 *
 * The hooks of a model's schemes, one after the other. The further scheme comes second and finds
 * what the positions have reserved. */
#include "terms.h"
#include "masks.h"

void terms_reserve(const struct config *c, const struct term_params *p, int L, int K,
                   struct arena *arena, struct attn *a)
{
    if (c->pos->reserve)
        c->pos->reserve(c, p->model, p->pos, K, arena, a);
    if (c->more && c->more->reserve)
        c->more->reserve(c, p->model, p->more, K, arena, a);
    masks_reserve(&c->masks, L, arena, a);
}

void terms_lower(const struct engine *g, const struct config *c, const struct term_params *p,
                 const float *codes, struct attn *a)
{
    if (c->pos->lower)
        c->pos->lower(g, c, p->model, p->pos, codes, a);
    if (c->more && c->more->lower)
        c->more->lower(g, c, p->model, p->more, codes, a);
}

static size_t tables_of(const struct pos *scheme, const struct config *c, int K)
{
    return scheme && scheme->n_tables_grad ? scheme->n_tables_grad(c, K) : 0;
}

size_t terms_n_tables_grad(const struct config *c, int K)
{
    return tables_of(c->pos, c, K) + tables_of(c->more, c, K);
}

void terms_grad(const struct config *c, const struct term_params *p, int K, const struct attn *a,
                float *tables, struct attn_grad *d)
{
    if (c->pos->terms_grad)
        c->pos->terms_grad(c, p->model, p->pos, a, tables, d);
    if (c->more && c->more->terms_grad)
        c->more->terms_grad(c, p->model, p->more, a, tables + tables_of(c->pos, c, K), d);
}

void terms_lower_grad(const struct engine *g, const struct config *c, const struct term_params *p,
                      const float *codes, const struct attn *a, const struct attn_grad *d)
{
    if (c->pos->lower_grad)
        c->pos->lower_grad(g, c, p->model, p->pos, codes, a, d);
    if (c->more && c->more->lower_grad)
        c->more->lower_grad(g, c, p->model, p->more, codes, a, d);
}
