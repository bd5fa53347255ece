/* SPDX-License-Identifier: MIT
 *
 * The hooks of a model's schemes, one after the other. The second scheme, attn_extra, is called
 * last and finds what the positions have reserved. */
#include "terms.h"
#include "masks.h"

/* The same hook of both schemes, NULL = it has none. */
static void run(struct pos_call t, const struct term_params *p,
                void (*of_pos)(const struct pos_call *), void (*of_extra)(const struct pos_call *))
{
    t.model = p->model;
    t.layer = p->pos;
    if (of_pos)
        of_pos(&t);
    t.layer = p->attn_extra;
    if (of_extra)
        of_extra(&t);
}
#define RUN(hook, c, p, ...)                                                                       \
    run((struct pos_call){__VA_ARGS__}, p, (c)->pos->hook,                                         \
        (c)->attn_extra ? (c)->attn_extra->hook : NULL)

void terms_reserve(const struct config *c, const struct term_params *p, int layer, int L, int K,
                   struct arena *arena, struct attn *a)
{
    if (p)
        RUN(reserve, c, p, .c = c, .K = K, .arena = arena, .a = a);
    if (c->attn_extra && c->attn_extra->weigh)
        a->weigh = c->attn_extra->weigh;
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
    RUN(build_tables, c, p, .g = g, .c = c, .pos_encoding = pos_encoding, .a = a);
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

void terms_grad(const struct config *c, const struct term_params *p, int K, struct attn *a,
                float *tables, struct attn_grad *d)
{
    const size_t before = tables_of(c->pos, c, K); /* of none there is no address to move */
    struct pos_call t = {
        .c = c, .model = p->model, .layer = p->pos, .a = a, .tables = tables, .d = d};

    if (c->pos->terms_grad)
        c->pos->terms_grad(&t);
    t.layer = p->attn_extra;
    t.tables = before ? tables + before : tables;
    if (c->attn_extra && c->attn_extra->terms_grad)
        c->attn_extra->terms_grad(&t);
}

void terms_build_tables_grad(const struct engine *g, const struct config *c,
                             const struct term_params *p, const float *pos_encoding, struct attn *a,
                             struct attn_grad *d)
{
    RUN(build_tables_grad, c, p, .g = g, .c = c, .pos_encoding = pos_encoding, .a = a, .d = d);
}
