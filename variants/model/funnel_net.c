/* SPDX-License-Identifier: MIT
 *
 * The funnel's layers, tables, and forward pass; backward: funnel_net_grad.c. */
#include "funnel_inner.h"
#include "variants/parts/parts.h"

#include <stdio.h>
#include <string.h>

/* ---- declaration -------------------------------------------------------------------------- */

static void layer_params(const struct config *c, const char *prefix, struct params *p)
{
    const int HD = c->H * c->dh, heads[] = {c->H, c->dh};
    char ff[48];

    params_matrix(p, HD, c->D, prefix, "attn.q.weight");
    params_matrix(p, HD, c->D, prefix, "attn.k.weight");
    params_vector(p, INIT_ZERO, 0, HD, prefix, "attn.k.bias");
    params_matrix(p, HD, c->D, prefix, "attn.v.weight");
    params_vector(p, INIT_ZERO, 0, HD, prefix, "attn.v.bias");
    params_matrix(p, c->D, HD, prefix, "attn.o.weight");
    params_vector(p, INIT_ZERO, 0, c->D, prefix, "attn.o.bias");
    params_matrix(p, HD, c->D, prefix, "attn.r.weight");
    params_add(p, INIT_TABLE, 0, 2, heads, "%sattn.bias_u", prefix);
    params_add(p, INIT_TABLE, 0, 2, heads, "%sattn.bias_v", prefix);
    norm_params(c, prefix, "ln1", p);
    norm_params(c, prefix, "ln2", p);
    snprintf(ff, sizeof(ff), "%sff.", prefix);
    c->ffn->params(c, ff, p);
}

static void add_layer(struct funnel *f, const char *prefix)
{
    f->at[f->n++].first = f->params.n;
    layer_params(&f->c, prefix, &f->params);
}

enum status funnel_init(struct funnel *f, const struct config *c, const int *layers, int blocks,
                        int dec_layers, struct err *e)
{
    int n = dec_layers;
    char prefix[32];

    *f = (struct funnel){.c = *c, .blocks = blocks, .dec_layers = dec_layers};
    for (int b = 0; b < blocks && b < FUNNEL_BLOCKS; b++) {
        f->layers[b] = layers[b];
        n = layers[b] < 1 ? FUNNEL_LAYERS + 1 : n + layers[b];
    }
    if (blocks < 1 || blocks > FUNNEL_BLOCKS || dec_layers < 0 || n > FUNNEL_LAYERS)
        return fail(e, E_USAGE,
                    "a funnel of %d blocks and %d decoder layers  -> 1 to %d blocks of 1 or more "
                    "layers, at most %d together",
                    blocks, dec_layers, FUNNEL_BLOCKS, FUNNEL_LAYERS);
    if (c->D < 2 || c->D % 2 || c->H < 1 || c->dh < 1 || c->F < 1)
        return fail(e, E_USAGE, "a funnel of width %d, %d heads of %d  -> an even width, 1 or more",
                    c->D, c->H, c->dh);
    for (int b = 0; b < blocks; b++)
        for (int l = 0; l < layers[b]; l++) {
            snprintf(prefix, sizeof(prefix), "enc.%d.%d.", b, l);
            add_layer(f, prefix);
        }
    for (int l = 0; l < dec_layers; l++) {
        snprintf(prefix, sizeof(prefix), "dec.%d.", l);
        add_layer(f, prefix);
    }
    return OK;
}

void funnel_free(struct funnel *f)
{
    params_free(&f->params);
    *f = (struct funnel){0};
}

/* ---- binding ------------------------------------------------------------------------------ */

static size_t floats(int B, int rows, int width)
{
    return (size_t)B * (size_t)rows * (size_t)width;
}

/* Dimensions and terms of one layer's attention. A pool group of s tokens is placed at its first
 * token, or, if causal, at its last. */
static struct attn layer_attn(const struct funnel *f, const struct funnel_layer *l)
{
    const struct config *c = &f->c;
    const ptrdiff_t row = (ptrdiff_t)c->H * c->dh;
    const struct param *p = &f->params.v[l->first];
    const int q_first = c->causal ? l->sq - l->sk : 0;
    const int farthest = q_first + (l->Lq - 1) * l->sq;

    return (struct attn){
        .B = f->B,
        .H = c->H,
        .Hkv = c->H,
        .L = l->Lq,
        .M = l->Lk - l->Lq,
        .dh = c->dh,
        .causal = c->causal,
        .scale = c->scale,
        .q_step = l->sq,
        .k_step = l->sk,
        .q_first = q_first,
        .R = farthest + 1,
        .Rf = c->causal ? 0 : (l->Lk - 1) * l->sk,
        .q_at = {l->Lq * row, row},
        .k_at = {l->Lk * row, row},
        .v_at = {l->Lk * row, row},
        .o_at = {l->Lq * row, row},
        .u = p[FUNNEL_U].data,
        .w = p[FUNNEL_W].data,
        .rel_head = (ptrdiff_t)(farthest + 1 + (c->causal ? 0 : (l->Lk - 1) * l->sk)) * c->dh};
}

static enum status bind_layer(struct funnel *f, const struct engine *g, struct funnel_layer *l,
                              struct arena *a, struct err *e)
{
    const struct config *c = &f->c;
    const int B = f->B, HD = c->H * c->dh;

    l->a = layer_attn(f, l);
    l->rows_rel = l->a.R + l->a.Rf;
    l->pos_encoding = arena_f32(a, PART_REL_POS, floats(1, l->rows_rel, c->D));
    l->a.rel_k = l->rel = arena_f32(a, PART_REL_POS, floats(1, l->rows_rel, HD));
    l->a.q = l->q = arena_f32(a, PART_ACTIVATIONS, floats(B, l->Lq, HD));
    l->a.k = l->k = arena_f32(a, PART_ACTIVATIONS, floats(B, l->Lk, HD));
    l->a.v = l->v = arena_f32(a, PART_ACTIVATIONS, floats(B, l->Lk, HD));
    l->a.o = l->o = arena_f32(a, PART_ACTIVATIONS, floats(B, l->Lq, HD));
    l->a.lse = l->lse = arena_f32(a, PART_ACTIVATIONS, floats(B, l->Lq, c->H));
    l->sum1 = arena_f32(a, PART_ACTIVATIONS, floats(B, l->Lq, c->D));
    l->y = arena_f32(a, PART_ACTIVATIONS, floats(B, l->Lq, c->D));
    l->sum2 = arena_f32(a, PART_ACTIVATIONS, floats(B, l->Lq, c->D));
    l->out = arena_f32(a, PART_ACTIVATIONS, floats(B, l->Lq, c->D));
    l->ffn = arena_f32(a, PART_ACTIVATIONS, c->ffn->work(c, B * l->Lq, true));
    if (l->Lq != l->Lk || l->sq != l->sk)
        l->q_in = arena_f32(a, PART_ACTIVATIONS, floats(B, l->Lq, c->D));
    enum status st = engine_attn(g, &l->a, &l->impl, e);
    return st == OK ? engine_attn_backward(g, l->impl, e) : st;
}

/* Rows and strides of every layer. */
static void shape_layers(struct funnel *f)
{
    struct funnel_layer *l = f->at;
    int T = f->T, step = 1;

    for (int b = 0; b < f->blocks; b++)
        for (int i = 0; i < f->layers[b]; i++, l++) {
            const bool pools = b && i == 0;
            l->Lk = T;
            l->sk = step;
            T = pools ? (T + 1) / 2 : T;
            step *= pools ? 2 : 1;
            l->Lq = T;
            l->sq = step;
        }
    for (int i = 0; i < f->dec_layers; i++, l++) {
        l->Lq = l->Lk = f->T;
        l->sq = l->sk = 1;
    }
}

static void bind_grad(struct funnel *f, const struct engine *g, struct arena *a)
{
    const struct config *c = &f->c;
    const int HD = c->H * c->dh;
    size_t rel = 0, bytes = 0;

    for (int i = 0; i < f->n; i++) {
        const struct funnel_layer *l = &f->at[i];
        const struct attn_need fwd = l->impl->need(&l->a, g->threads);
        const struct attn_need bwd = l->impl->need_backward(&l->a, g->threads);
        const size_t n = floats(1, l->rows_rel, HD);
        const size_t one = fwd.scores_bytes + fwd.scratch_bytes;
        const size_t two = bwd.scores_bytes + bwd.scratch_bytes;
        rel = n > rel ? n : rel;
        bytes = one > bytes ? one : bytes;
        bytes = two > bytes ? two : bytes;
    }
    f->scratch = arena_take(a, PART_SCRATCH, bytes);
    f->d_rel = arena_f32(a, PART_REL_POS, rel);
    for (size_t i = 0; i < ARRAY_LEN(f->d); i++)
        f->d[i] = arena_f32(a, PART_ACTIVATIONS, floats(f->B, f->T, c->D));
    f->d_first = arena_f32(a, PART_ACTIVATIONS, floats(f->B, f->T, c->D));
    f->d_q = arena_f32(a, PART_ACTIVATIONS, floats(f->B, f->T, HD));
    f->d_k = arena_f32(a, PART_ACTIVATIONS, floats(f->B, f->T, HD));
    f->d_v = arena_f32(a, PART_ACTIVATIONS, floats(f->B, f->T, HD));
    f->d_o = arena_f32(a, PART_ACTIVATIONS, floats(f->B, f->T, HD));
    f->grad_work = arena_f32(a, PART_SCRATCH, c->ffn->work_grad(c, f->B * f->T));
    f->stats = arena_f32(a, PART_SCRATCH, floats(f->B, f->T, NORM_STATS));
}

enum status funnel_bind(struct funnel *f, const struct engine *g, int B, int T, struct arena *a,
                        struct err *e)
{
    f->B = B;
    f->T = T;
    params_place(&f->params, a);
    params_place_grad(&f->params, a);
    shape_layers(f);
    f->x = arena_f32(a, PART_ACTIVATIONS, floats(B, T, f->c.D));
    f->joined = arena_f32(a, PART_ACTIVATIONS, floats(B, T, f->c.D));
    for (int i = 0; i < f->n; i++) {
        const enum status st = bind_layer(f, g, &f->at[i], a, e);
        if (st != OK)
            return st;
    }
    bind_grad(f, g, a);
    /* Each layer reads the output of the one before it. */
    const int encoder = f->n - f->dec_layers;
    for (int i = 0; i < f->n; i++) {
        struct funnel_layer *l = &f->at[i];
        l->kv_in = i == encoder ? f->joined : i ? f->at[i - 1].out : f->x;
        if (l->Lq == l->Lk && l->sq == l->sk)
            l->q_in = l->kv_in;
    }
    f->top = f->at[encoder - 1].out;
    return OK;
}

void funnel_build_tables(struct funnel *f, const struct engine *g)
{
    const int D = f->c.D, dh = f->c.dh;

    for (int i = 0; i < f->n; i++) {
        const struct funnel_layer *l = &f->at[i];
        const struct param *W = &f->params.v[l->first + FUNNEL_R];
        for (int r = 0; r < l->rows_rel; r++)
            sinusoid_row(l->pos_encoding + (ptrdiff_t)r * D, D, l->a.R - 1 - r, SINUSOID_CONCAT);
        for (int h = 0; h < f->c.H; h++)
            g->ops.gemm(&(struct gemm){.tb = true,
                                       .m = l->rows_rel,
                                       .n = dh,
                                       .k = D,
                                       .alpha = 1,
                                       .a = l->pos_encoding,
                                       .lda = D,
                                       .b = W->data + (ptrdiff_t)h * dh * D,
                                       .ldb = D,
                                       .c = l->rel + h * l->a.rel_head,
                                       .ldc = dh,
                                       .threads = g->threads});
    }
}

/* ---- forward ------------------------------------------------------------------------------ */

/* Means of two rows of each sequence; an odd last row is copied. */
static void pool(float *y, const float *x, int B, int Lq, int Lk, int D)
{
    for (int b = 0; b < B; b++)
        for (int i = 0; i < Lq; i++) {
            const float *const one = x + ((ptrdiff_t)b * Lk + 2 * i) * D;
            const float *const two = 2 * i + 1 < Lk ? one + D : one;
            for (int d = 0; d < D; d++)
                y[((ptrdiff_t)b * Lq + i) * D + d] = (one[d] + two[d]) / 2;
        }
}

static void layer_forward(struct funnel *f, const struct engine *g, struct funnel_layer *l)
{
    const struct config *c = &f->c;
    const struct param *p = &f->params.v[l->first];
    const struct dropout none = {0};
    const int nq = f->B * l->Lq, nk = f->B * l->Lk;

    if (funnel_pools(l))
        pool(l->q_in, l->kv_in, f->B, l->Lq, l->Lk, c->D);
    linear_forward(g, &p[FUNNEL_Q], NULL, l->q, l->q_in, nq, (struct act){.y = l->q});
    linear_forward(g, &p[FUNNEL_K], &p[FUNNEL_K_BIAS], l->k, l->kv_in, nk, (struct act){.y = l->k});
    linear_forward(g, &p[FUNNEL_V], &p[FUNNEL_V_BIAS], l->v, l->kv_in, nk, (struct act){.y = l->v});
    l->impl->forward(g, &l->a, f->scratch);
    linear_forward(g, &p[FUNNEL_O], &p[FUNNEL_O_BIAS], l->sum1, l->o, nq,
                   (struct act){.y = l->sum1, .add = l->q_in});
    norm_apply(g, c, &p[FUNNEL_LN1], l->y, l->sum1, NULL, nq);
    c->ffn->forward(g, c, &p[FUNNEL_FFN], l->sum2, l->y, nq, l->ffn, true,
                    (struct act){.y = l->sum2, .add = l->y}, &none);
    norm_apply(g, c, &p[FUNNEL_LN2], l->out, l->sum2, NULL, nq);
}

int funnel_groups(const struct funnel *f) { return f->at[funnel_encoder(f) - 1].Lq; }

/* The decoder's input: each token's pool group from the top plus its row from block 0. */
static void join(struct funnel *f)
{
    const int D = f->c.D, step = funnel_step(f), groups = funnel_groups(f);
    const float *const unpooled = f->at[funnel_first(f)].out;

    for (int b = 0; b < f->B; b++)
        for (int t = 0; t < f->T; t++) {
            const ptrdiff_t at = ((ptrdiff_t)b * f->T + t) * D;
            const int group = funnel_group(f, t, step);
            for (int d = 0; d < D; d++)
                f->joined[at + d] =
                    unpooled[at + d] +
                    (group < 0 ? 0 : f->top[((ptrdiff_t)b * groups + group) * D + d]);
        }
}

const float *funnel_forward(struct funnel *f, const struct engine *g)
{
    for (int i = 0; i < f->n; i++) {
        if (i == funnel_encoder(f))
            join(f);
        layer_forward(f, g, &f->at[i]);
    }
    if (f->dec_layers == 0)
        join(f);
    return f->dec_layers ? f->at[f->n - 1].out : f->joined;
}
