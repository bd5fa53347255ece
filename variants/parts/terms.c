/* SPDX-License-Identifier: MIT
 *
 * The hooks of a model's schemes, one after the other. The second scheme, attn_extra, is called
 * last and finds what the positions have reserved. */
#include "terms.h"
#include "masks.h"

void terms_reserve(const struct config *c, const struct term_params *p, int layer, int L, int K,
                   struct arena *arena, struct attn *a)
{
    if (p && c->pos->reserve)
        c->pos->reserve(c, p->model, p->pos, K, arena, a);
    if (p && c->attn_extra && c->attn_extra->reserve)
        c->attn_extra->reserve(c, p->model, p->attn_extra, K, arena, a);
    const struct masks masks = config_masks(c, layer);
    masks_reserve(&masks, L, arena, a);
    if (!c->head_windows.n)
        return;
    int *const windows = arena_take(arena, PART_SCRATCH, (size_t)c->H * sizeof(*windows));
    for (int h = 0; arena->base && h < c->H; h++)
        windows[h] = config_head_window(c, layer, h);
    a->window_of_head = windows;
}

/* A table [R+Rf, n] for all heads or for each. */
static void round_table(const struct attn *a, const float *table, int n)
{
    for (int h = 0; table && h < (a->rel_head ? a->H : 1); h++)
        bf16_round((float *)table + h * a->rel_head, (size_t)(a->R + a->Rf) * (size_t)n);
}

/* They may be weights: those of a model in bf16 are of bf16. */
static void round_tables(struct attn *a)
{
    const size_t sinks = (size_t)a->H * (size_t)a->sinks;

    round_table(a, a->rel_k, a->dh);
    round_table(a, a->rel_q, a->dh);
    round_table(a, a->rel_v, a->dh);
    if (a->sink_k)
        bf16_round((float *)a->sink_k, sinks * (size_t)a->dh);
    if (a->sink_v)
        bf16_round((float *)a->sink_v, sinks * (size_t)attn_dv(a));
}

void terms_build_tables(const struct engine *g, const struct config *c, const struct term_params *p,
                        const float *pos_encoding, struct attn *a)
{
    if (c->pos->build_tables)
        c->pos->build_tables(g, c, p->model, p->pos, pos_encoding, a);
    if (c->attn_extra && c->attn_extra->build_tables)
        c->attn_extra->build_tables(g, c, p->model, p->attn_extra, pos_encoding, a);
    if (a->bf16)
        round_tables(a);
}

static size_t tables_of(const struct pos *scheme, const struct config *c, int K)
{
    return scheme && scheme->n_tables_grad ? scheme->n_tables_grad(c, K) : 0;
}

size_t terms_n_tables_grad(const struct config *c, int K)
{
    return tables_of(c->pos, c, K) + tables_of(c->attn_extra, c, K);
}

void terms_grad(const struct config *c, const struct term_params *p, int K, const struct attn *a,
                float *tables, struct attn_grad *d)
{
    if (c->pos->terms_grad)
        c->pos->terms_grad(c, p->model, p->pos, a, tables, d);
    const size_t before = tables_of(c->pos, c, K); /* of none there is no address to move */

    if (c->attn_extra && c->attn_extra->terms_grad)
        c->attn_extra->terms_grad(c, p->model, p->attn_extra, a, before ? tables + before : tables,
                                  d);
}

void terms_build_tables_grad(const struct engine *g, const struct config *c,
                             const struct term_params *p, const float *pos_encoding,
                             const struct attn *a, const struct attn_grad *d)
{
    if (c->pos->build_tables_grad)
        c->pos->build_tables_grad(g, c, p->model, p->pos, pos_encoding, a, d);
    if (c->attn_extra && c->attn_extra->build_tables_grad)
        c->attn_extra->build_tables_grad(g, c, p->model, p->attn_extra, pos_encoding, a, d);
}
