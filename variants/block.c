/* SPDX-License-Identifier: MIT
 *
 * One layer, forward. Two sub-layers, attention and feed-forward, wired into the stream in one of
 * three ways; m is memory, x the layer's input, n_seg the last L rows of n:
 *
 *   post      y = LN1(x + Attn(x; [m;x]))                 z = LN2(y + FFN(y))
 *   pre       n = LN1([m;x])   y = x + Attn(n_seg; n)     z = y + FFN(LN2(y))
 *   reorder   n = LN1([m;x])   y = g1(x, relu(Attn(n_seg; n)))   z = g2(y, relu(FFN(LN2(y)))) */
#include "block_inner.h"
#include "parts/linear.h"

#include <string.h>

const char *const mem_kind_name[MEM_KIND_COUNT] = {"", "hidden", "kv", "recompute"};

/* ---- memory ------------------------------------------------------------------------------- */

struct attn attn_of_config(const struct config *c, int B, int L, int M)
{
    const ptrdiff_t row = (ptrdiff_t)c->H * c->dh;

    return (struct attn){
        .B = B,
        .H = c->H,
        .Hkv = c->H,
        .L = L,
        .M = M,
        .dh = c->dh,
        .window = c->window,
        .causal = c->causal,
        .scale = c->scale,
        .q_at = {.batch = L * row, .row = row},
        .k_at = {.batch = (M + L) * row, .row = row},
        .v_at = {.batch = (M + L) * row, .row = row},
        .o_at = {.batch = L * row, .row = row},
    };
}

enum status block_bind(struct block *b, const struct engine *g, enum mem_kind kind,
                       struct extent max, struct arena *a, struct err *e)
{
    const struct config *c = b->c;
    const int HD = c->H * c->dh;

    if (kind == MEM_HIDDEN)
        cache_bind(&b->hidden, max.B, max.L, max.M, c->D, a);
    if (kind == MEM_KV) {
        cache_bind(&b->keys, max.B, max.L, max.M, HD, a);
        cache_bind(&b->values, max.B, max.L, max.M, HD, a);
    }
    b->lowered = attn_of_config(c, max.B, max.L, max.M);
    if (c->pos->reserve)
        c->pos->reserve(c, b->model, b->pos, max.M + max.L, a, &b->lowered);
    return engine_attn(g, &b->lowered, &b->impl, e);
}

void work_bind(struct work *w, const struct engine *g, const struct block *b, enum mem_kind kind,
               struct extent max, struct arena *a)
{
    const struct config *c = b->c;
    const size_t HD = (size_t)c->H * (size_t)c->dh, D = (size_t)c->D;
    const size_t rows = (size_t)max.B * (size_t)max.L;
    const size_t keys = (size_t)max.B * (size_t)(max.L + max.M);
    const struct attn_need need = b->impl->need(&b->lowered, g->threads);

    *w = (struct work){0};
    if (c->norm != NORM_POST)
        w->n = arena_f32(a, PART_ACTIVATIONS, (kind == MEM_KV ? rows : keys) * D);
    w->q = arena_f32(a, PART_ACTIVATIONS, rows * HD);
    if (kind != MEM_KV) { /* else keys and values are projected straight into the caches */
        w->k = arena_f32(a, PART_ACTIVATIONS, keys * HD);
        w->v = arena_f32(a, PART_ACTIVATIONS, keys * HD);
    }
    w->o = arena_f32(a, PART_ACTIVATIONS, rows * HD);
    w->y = arena_f32(a, PART_ACTIVATIONS, rows * D);
    w->n2 = arena_f32(a, PART_ACTIVATIONS, rows * D);
    w->hidden = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)c->F);
    if (c->norm == NORM_REORDER) /* a gate cannot write over its x */
        w->mid = arena_f32(a, PART_ACTIVATIONS, rows * D);
    if (c->gate && c->gate->work)
        w->gate = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)c->gate->work * D);
    w->y2 = w->y;
    w->gate2 = w->gate;
    if (c->pos->n_codes)
        w->codes = arena_f32(a, PART_SCRATCH, c->pos->n_codes(c, max.M + max.L));
    /* Scores first: they are the larger part and the ledger has a column for them. */
    w->attn = arena_take(a, PART_SCRATCH, need.scores_bytes + need.scratch_bytes);
    a->part[PART_SCRATCH] -= need.scores_bytes;
    a->part[PART_SCORES] += need.scores_bytes;
}

void block_lower(const struct engine *g, struct block *b, const struct work *w)
{
    if (b->c->pos->lower)
        b->c->pos->lower(g, b->c, b->pos, w->codes, &b->lowered);
}

void block_commit(struct block *b, enum mem_kind kind, int L)
{
    if (kind == MEM_HIDDEN)
        cache_commit(&b->hidden, L);
    if (kind == MEM_KV) {
        cache_commit(&b->keys, L);
        cache_commit(&b->values, L);
    }
}

/* ---- forward ------------------------------------------------------------------------------ */

/* y = x W^T (+ bias) for `rows` rows of each of B sequences: one product where both are contiguous,
 * one per sequence where they lie in a cache. */
static void linear(const struct engine *g, struct rows y, struct rows x, int B, int rows,
                   const struct param *w, const struct param *bias)
{
    const int out = w->shape[0], in = w->shape[1];

    if (x.stride == (ptrdiff_t)rows * in && y.stride == (ptrdiff_t)rows * out) {
        rows *= B;
        B = 1;
    }
    for (int b = 0; b < B; b++) {
        float *dst = y.at + b * y.stride;
        linear_forward(g, w, bias, dst, x.at + b * x.stride, rows, (struct act){.y = dst});
    }
}

static void layer_norm(const struct engine *g, const struct config *c, const struct param *ln,
                       float *y, const float *x, const float *add, int rows)
{
    g->ops.norm(&(struct norm){.y = y,
                               .x = x,
                               .add = add,
                               .weight = ln[0].data,
                               .bias = ln[1].data,
                               .rows = rows,
                               .n = c->D,
                               .eps = c->ln_eps,
                               .threads = g->threads});
}

/* Copy x behind the remembered states; returns the joined rows [m; x]. */
static struct rows join(struct cache *cache, const float *x, int B, int L)
{
    const ptrdiff_t n = (ptrdiff_t)L * cache->n;

    cache_reserve(cache, L);
    for (int b = 0; b < B; b++)
        memcpy(cache_rows(cache, b) + (ptrdiff_t)cache->M * cache->n, x + b * n,
               sizeof(float) * (size_t)n);
    return (struct rows){cache_rows(cache, 0), cache_stride(cache)};
}

int block_memory(const struct block *b, enum mem_kind kind)
{
    return kind == MEM_HIDDEN ? b->hidden.M : kind == MEM_KV ? b->keys.M : 0;
}

/* What keys and values are projected from: [m; x] where hidden states are kept, else x; normalised
 * where the wiring asks for it. */
static struct rows key_source(const struct engine *g, struct block *b, enum mem_kind kind,
                              struct work *w, const float *x, int B, int L)
{
    const struct config *c = b->c;
    const int rows = L + (kind == MEM_HIDDEN ? b->hidden.M : 0);
    struct rows from = {(float *)x, (ptrdiff_t)L * c->D};

    if (kind == MEM_HIDDEN)
        from = join(&b->hidden, x, B, L);
    if (c->norm == NORM_POST)
        return from;
    const struct rows n = {w->n, (ptrdiff_t)rows * c->D};
    for (int s = 0; s < B; s++)
        layer_norm(g, c, b->ln1, n.at + s * n.stride, from.at + s * from.stride, NULL, rows);
    return n;
}

/* Where the keys of `rows` source rows go: work space, or straight behind the cached ones. */
static struct rows behind(struct cache *cache, int rows)
{
    cache_reserve(cache, rows);
    return (struct rows){cache_rows(cache, 0) + (ptrdiff_t)cache->M * cache->n,
                         cache_stride(cache)};
}

static void project_kv(const struct engine *g, const struct block *b, struct rows k, struct rows v,
                       struct rows from, int B, int rows)
{
    const struct param *bias = b->c->attn_bias ? b->attn + ATTN_WEIGHTS : NULL;

    linear(g, k, from, B, rows, &b->attn[ATTN_K], bias ? &bias[ATTN_K] : NULL);
    linear(g, v, from, B, rows, &b->attn[ATTN_V], bias ? &bias[ATTN_V] : NULL);
}

struct attn block_operands(const struct block *b, enum mem_kind kind, const struct work *w, int B,
                           int L)
{
    const ptrdiff_t HD = (ptrdiff_t)b->c->H * b->c->dh;
    const int M = block_memory(b, kind);
    struct attn a = b->lowered;

    attn_resize(&a, L, M);
    a.B = B;
    a.q = w->q;
    a.o = w->o;
    a.lse = w->lse;
    a.q_at.batch = a.o_at.batch = L * HD;
    a.k = kind == MEM_KV ? cache_rows(&b->keys, 0) : w->k;
    a.v = kind == MEM_KV ? cache_rows(&b->values, 0) : w->v;
    a.k_at.batch = kind == MEM_KV ? cache_stride(&b->keys) : (M + L) * HD;
    a.v_at.batch = a.k_at.batch;
    return a;
}

struct attn block_project(const struct engine *g, struct block *b, enum mem_kind kind,
                          struct work *w, const float *x, int B, int L)
{
    const struct config *c = b->c;
    const int HD = c->H * c->dh, M = block_memory(b, kind);
    const int fresh = kind == MEM_KV ? L : M + L; /* rows whose keys are projected now */
    const struct rows from = key_source(g, b, kind, w, x, B, L);
    const struct rows q_from = {from.at + (ptrdiff_t)(fresh - L) * c->D, from.stride};
    struct rows k = {w->k, (ptrdiff_t)fresh * HD}, v = {w->v, (ptrdiff_t)fresh * HD};

    if (kind == MEM_KV) {
        k = behind(&b->keys, L);
        v = behind(&b->values, L);
    }
    linear(g, (struct rows){w->q, (ptrdiff_t)L * HD}, q_from, B, L, &b->attn[ATTN_Q],
           c->attn_bias ? &b->attn[ATTN_WEIGHTS + ATTN_Q] : NULL);
    project_kv(g, b, k, v, from, B, fresh);
    return block_operands(b, kind, w, B, L);
}

void block_unproject(const struct engine *g, const struct block *b, const struct work *w, float *y,
                     int B, int L)
{
    linear_forward(g, &b->attn[ATTN_O], NULL, y, w->o, B * L, (struct act){.y = y});
}

static const struct param *output_bias(const struct block *b)
{
    return b->c->attn_bias ? &b->attn[ATTN_WEIGHTS + ATTN_O] : NULL;
}

const float *block_output_bias(const struct block *b)
{
    return b->c->attn_bias ? output_bias(b)->data : NULL;
}

void block_remember(const struct engine *g, struct block *b, enum mem_kind kind, struct work *w,
                    const float *x, int B, int rows)
{
    if (kind == MEM_HIDDEN) {
        join(&b->hidden, x, B, rows);
    } else {
        CHECK(kind == MEM_KV);
        const struct rows from = key_source(g, b, kind, w, x, B, rows);
        project_kv(g, b, behind(&b->keys, rows), behind(&b->values, rows), from, B, rows);
    }
    block_commit(b, kind, rows);
}

/* What follows a sub-layer's last product y: z = x + y in the plain forms, y = relu(y) in the gated
 * one, whose gate then makes z = gate(x, y). z may be x in the plain forms. */
static struct act leave(const struct config *c, const struct work *w, float *z, const float *x,
                        float *y)
{
    if (c->norm == NORM_REORDER)
        return (struct act){.kind = ACT_RELU, .y = y};
    if (w->drop.p > 0) /* x is added by drop_and_leave */
        return (struct act){.y = y};
    return (struct act){.y = z, .add = x};
}

/* Behind `leave`: what dropout leaves of y goes the same way. */
static void drop_and_leave(const struct engine *g, const struct config *c, const struct work *w,
                           enum drop_place place, float *z, const float *x, float *y, int rows)
{
    if (w->drop.p == 0)
        return;
    dropout(&w->drop, place, y, (size_t)rows * (size_t)c->D, g->threads);
    if (c->norm != NORM_REORDER)
        g->ops.act(&(struct act){
            .y = z, .x = x, .add = y, .rows = rows, .n = c->D, .threads = g->threads});
}

void block_forward(const struct engine *g, struct block *b, enum mem_kind kind, struct work *w,
                   float *z, float *x, int B, int L)
{
    const struct config *c = b->c;
    const bool post = c->norm == NORM_POST, gated = c->norm == NORM_REORDER;
    const int rows = B * L;
    float *mid = w->mid ? w->mid : z, *sum1 = w->sum1 ? w->sum1 : z, *sum2 = w->sum2 ? w->sum2 : z;

    if (c->pos->enter) {
        CHECK(kind != MEM_HIDDEN); /* memory would have to be kept without the added positions */
        c->pos->enter(c, b->pos, x, B, L);
    }
    const struct attn a = block_project(g, b, kind, w, x, B, L);
    b->impl->forward(g, &a, w->attn);
    linear_forward(g, &b->attn[ATTN_O], output_bias(b), w->y, w->o, rows,
                   leave(c, w, post ? sum1 : mid, x, w->y));
    drop_and_leave(g, c, w, DROP_ATTENTION, post ? sum1 : mid, x, w->y, rows);
    if (gated)
        c->gate->forward(g, c, b->gate1, mid, x, w->y, rows, w->gate);
    if (post)
        layer_norm(g, c, b->ln1, mid, sum1, NULL, rows);
    else
        layer_norm(g, c, b->ln2, w->n2, mid, NULL, rows);

    c->ffn->forward(g, c, b->ff, w->y2, post ? mid : w->n2, rows, w->hidden,
                    leave(c, w, post ? sum2 : z, mid, w->y2), &w->drop);
    drop_and_leave(g, c, w, DROP_FFN, post ? sum2 : z, mid, w->y2, rows);
    if (gated)
        c->gate->forward(g, c, b->gate2, z, mid, w->y2, rows, w->gate2);
    if (post)
        layer_norm(g, c, b->ln2, z, sum2, NULL, rows);
}

/* ---- cost --------------------------------------------------------------------------------- */

double block_flop(const struct block *b, enum mem_kind kind, int B, int L, int M)
{
    const struct config *c = b->c;
    const double HD = (double)c->H * c->dh, rows = (double)B * L;
    const double projected = kind == MEM_HIDDEN ? (double)B * (M + L) : rows;
    struct attn a = b->lowered;

    attn_resize(&a, L, M);
    a.B = B;
    double flop = attn_flop(&a) + 4 * rows * c->D * HD /* W_q, W_o */
                  + 4 * projected * c->D * HD          /* W_k, W_v */
                  + c->ffn->flop(c, B * L);
    if (c->gate)
        flop += 2 * 2.0 * c->gate->n_matrices * rows * c->D * c->D; /* two gates per layer */
    return flop;
}
