/* SPDX-License-Identifier: MIT
 *
 * For tests of position schemes: one whose tables are in an arena of their own, with drawn weights, on
 * the reference. */
#pragma once

#include "open_engine.h"
#include "variants/parts/parts.h"

struct laid {
    struct engine g;
    struct config c;
    struct params params;
    struct arena arena;
    int at_layer;
    struct attn a; /* K = M + L keys */
    float *encoding;
    float *tables; /* gradient */
};

static inline struct pos_call call_of(struct laid *t)
{
    return (struct pos_call){
        MEMBERS(&t->, g, c, a, arena), .model = t->params.v, .layer = t->params.v + t->at_layer,
        .pos_encoding = t->encoding,   .K = t->a.M + t->a.L, .tables = t->tables};
}

static inline void lay(struct laid *t, struct attn a)
{
    const struct pos *const pos = t->c.pos;
    const int K = a.M + a.L;

    params_place(&t->params, &t->arena);
    params_place_grad(&t->params, &t->arena);
    t->a = a;
    const struct pos_call call = call_of(t);
    pos->reserve(&call);
    t->encoding =
        arena_f32(&t->arena, PART_REL_POS, pos->n_pos_encoding ? pos->n_pos_encoding(&t->c, K) : 1);
    t->tables =
        arena_f32(&t->arena, PART_REL_POS, pos->n_tables_grad ? pos->n_tables_grad(&t->c, K) : 1);
}

/* The attention has L queries after M keys. Kept until the test ends. */
static inline void open_laid(struct laid *t, struct config c, int L, int M)
{
    const struct attn a = {
        .B = 1, .H = c.H, .Hkv = c.H, .L = L, .M = M, .dh = c.dh, .causal = c.causal};

    *t = (struct laid){.g = open_engine("ref", 1), .c = c};
    MUST(config_check(&t->c, &failure));
    if (c.pos->model_params)
        c.pos->model_params(&t->c, &t->params);
    t->at_layer = t->params.n;
    if (c.pos->layer_params)
        c.pos->layer_params(&t->c, "layers.0.", &t->params);
    lay(t, a);
    MUST(arena_place(&t->arena, HUGE_NEVER, NULL, NULL, &failure));
    memset(t->arena.base, 0xff, t->arena.size);
    lay(t, a);
    params_init(&t->params, SEED, 1);
    if (t->params.n)
        params_zero_grad(&t->params);
    if (c.pos->pos_encoding)
        c.pos->pos_encoding(&t->c, 0, L + M, t->encoding);
    const struct pos_call call = call_of(t);
    if (c.pos->build_tables)
        c.pos->build_tables(&call);
    kept_copy(t, sizeof(*t));
}
