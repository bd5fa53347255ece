/* SPDX-License-Identifier: MIT
 *
 * Cross attention: projections around the ordinary core, whose keys are as many as the context has
 * rows. Sequences whose contexts differ in length are attended to one by one. */
#include "cross.h"
#include "sublayer_attention.h"
#include "variants/parts/linear.h"

void cross_params(const struct config *c, int ctx_width, const char *prefix, struct params *p)
{
    project_params(&(struct sublayer){.c = c, .asks = true}, c->D, ctx_width, prefix, p);
}

/* ---- calls of the core -------------------------------------------------------------------- */

struct attn cross_attn(const struct cross *t)
{
    struct attn a = attn_of_config(t->c, t->B, t->L, 0);

    a.causal = false;
    a.no_content = false;
    a.window = 0;
    a.K = t->S;
    a.k_at.batch = a.v_at.batch = t->S * a.k_at.row;
    a.q = t->q;
    a.k = t->k;
    a.v = t->v;
    a.o = t->o;
    a.lse = t->lse;
    return a;
}

int cross_calls(const struct cross *t) { return t->seen ? t->B : 1; }

struct attn cross_call(const struct cross *t, int i)
{
    struct attn a = cross_attn(t);

    if (!t->seen)
        return a;
    a.B = 1;
    a.K = t->seen[i];
    if (a.q) { /* placed */
        a.q += i * a.q_at.batch;
        a.k += i * a.k_at.batch;
        a.v += i * a.v_at.batch;
        a.o += i * a.o_at.batch;
    }
    a.lse = t->lse ? t->lse + (ptrdiff_t)i * a.H * a.L : NULL;
    return a;
}

static void *take_scratch(const struct cross *t, const struct engine *g, bool backward,
                          struct arena *arena)
{
    struct attn_need most = {0};

    for (int i = 0; i < cross_calls(t); i++) {
        const struct attn a = cross_call(t, i);
        most =
            larger_need((backward ? t->impl->need_backward : t->impl->need)(&a, g->threads), most);
    }
    void *const at = arena_take(arena, PART_SCORES, most.scores_bytes + most.scratch_bytes);
    arena->part[PART_SCORES] -= most.scratch_bytes;
    arena->part[PART_SCRATCH] += most.scratch_bytes;
    return at;
}

enum status cross_bind(struct cross *t, const struct engine *g, enum part kv, bool backward,
                       struct arena *a, struct err *e)
{
    const size_t queries = (size_t)t->B * (size_t)t->L * (size_t)config_q_width(t->c);
    const size_t keys = (size_t)t->B * (size_t)t->S * (size_t)config_kv_width(t->c);

    t->q = arena_f32(a, PART_ACTIVATIONS, queries);
    t->o = arena_f32(a, PART_ACTIVATIONS, queries);
    t->k = arena_f32(a, kv, keys);
    t->v = arena_f32(a, kv, keys);
    t->lse = backward ? arena_f32(a, PART_ACTIVATIONS, queries / (size_t)t->c->dh) : NULL;
    const struct attn asked = cross_attn(t);
    TRY(engine_attn(g, &asked, &t->impl, e));
    if (backward)
        TRY(engine_attn_backward(g, t->impl, e));
    t->scratch = take_scratch(t, g, false, a);
    if (!backward)
        return OK;
    t->d_q = arena_f32(a, PART_ACTIVATIONS, queries);
    t->d_o = arena_f32(a, PART_ACTIVATIONS, queries);
    t->d_k = arena_f32(a, PART_ACTIVATIONS, keys);
    t->d_v = arena_f32(a, PART_ACTIVATIONS, keys);
    t->d_scratch = take_scratch(t, g, true, a);
    return OK;
}

/* ---- forward ------------------------------------------------------------------------------ */

static struct seq_rows rows(const float *at, int n, int width)
{
    return (struct seq_rows){(float *)at, (ptrdiff_t)n * width};
}

static const struct param *bias(const struct cross *t, int which)
{
    return t->c->attn_bias ? &t->weights[ATTN_WEIGHTS + which] : NULL;
}

void cross_context(const struct engine *g, const struct cross *t, const float *ctx)
{
    const struct seq_rows from = rows(ctx, t->S, t->ctx_width);
    const int width = config_kv_width(t->c);

    project_map(g, &t->weights[ATTN_K], bias(t, ATTN_K), rows(t->k, t->S, width), from, t->B, t->S);
    project_map(g, &t->weights[ATTN_V], bias(t, ATTN_V), rows(t->v, t->S, width), from, t->B, t->S);
}

void cross_forward(const struct engine *g, const struct cross *t, float *y, const float *x)
{
    const int D = t->c->D, width = config_q_width(t->c);

    project_map(g, &t->weights[ATTN_Q], bias(t, ATTN_Q), rows(t->q, t->L, width), rows(x, t->L, D),
                t->B, t->L);
    for (int i = 0; i < cross_calls(t); i++) {
        const struct attn a = cross_call(t, i);
        t->impl->forward(g, &a, t->scratch);
    }
    project_map(g, &t->weights[ATTN_O], bias(t, ATTN_O), rows(y, t->L, D), rows(t->o, t->L, width),
                t->B, t->L);
}

/* ---- backward ----------------------------------------------------------------------------- */

/* Of one map y = W x + b of n rows a sequence; adds to beta d_x. */
static void map_grad(const struct engine *g, const struct cross *t, int which, float *d_x,
                     const float *d_y, const float *x, int n, float beta)
{
    const struct param *const w = &t->weights[which];
    const struct sublayer_input from = {rows(x, n, w->shape[1]), t->B, 0, n};

    project_map_grad(g, w, bias(t, which), d_y, from, 0, d_x, 0, beta);
}

/* Rows of the context that a sequence does not see have no gradient. */
static void clear_unseen(const struct cross *t)
{
    const size_t width = (size_t)config_kv_width(t->c), S = (size_t)t->S;

    for (int b = 0; t->seen && b < t->B; b++) {
        const size_t first = ((size_t)b * S + (size_t)t->seen[b]) * width;
        const size_t n = (S - (size_t)t->seen[b]) * width;
        memset(t->d_k + first, 0, n * sizeof(float));
        memset(t->d_v + first, 0, n * sizeof(float));
    }
}

void cross_backward(const struct engine *g, const struct cross *t, float *d_x, float *d_ctx,
                    const float *d_y, const float *x, const float *ctx)
{
    map_grad(g, t, ATTN_O, t->d_o, d_y, t->o, t->L, 0);
    clear_unseen(t);
    for (int i = 0; i < cross_calls(t); i++) {
        const struct attn a = cross_call(t, i);
        const struct attn_grad d = {.d_o = t->d_o + (a.o - t->o),
                                    .d_q = t->d_q + (a.q - t->q),
                                    .d_k = t->d_k + (a.k - t->k),
                                    .d_v = t->d_v + (a.v - t->v)};
        t->impl->backward(g, &a, &d, t->d_scratch);
    }
    map_grad(g, t, ATTN_Q, d_x, t->d_q, x, t->L, 0);
    map_grad(g, t, ATTN_K, d_ctx, t->d_k, ctx, t->S, 0);
    map_grad(g, t, ATTN_V, d_ctx, t->d_v, ctx, t->S, 1);
}

/* ---- cost --------------------------------------------------------------------------------- */

double cross_context_flop(const struct cross *t)
{
    return 4.0 * t->B * t->S * t->ctx_width * config_kv_width(t->c);
}

static double query_flop(const struct cross *t)
{
    return 4.0 * t->B * t->L * t->c->D * config_q_width(t->c);
}

double cross_flop(const struct cross *t)
{
    double flop = query_flop(t);

    for (int i = 0; i < cross_calls(t); i++) {
        const struct attn a = cross_call(t, i);
        flop += attn_flop(&a);
    }
    return flop;
}

double cross_grad_flop(const struct cross *t)
{
    double flop = 2 * query_flop(t) + 2 * cross_context_flop(t);

    for (int i = 0; i < cross_calls(t); i++) {
        const struct attn a = cross_call(t, i);
        flop += attn_grad_flop(&a);
    }
    return flop;
}
