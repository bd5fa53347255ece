/* SPDX-License-Identifier: MIT
 *
 * One layer, backward: block.c read from its last line to its first. d is the gradient of the
 * stream; a sub-layer's gradient is added to it where the sub-layer branched off. */
#include "block_inner.h"
#include "parts/linear.h"

#include <math.h>
#include <string.h>

/* ---- work space --------------------------------------------------------------------------- */

static float *keep(float *shared, bool first, struct arena *a, size_t n)
{
    return first ? shared : arena_f32(a, PART_ACTIVATIONS, n);
}

void work_bind_kept(struct work *w, const struct work *shared, bool first, const struct block *b,
                    enum mem_kind kind, struct extent max, struct arena *a)
{
    const struct config *c = b->c;
    const size_t HD = (size_t)c->H * (size_t)c->dh, D = (size_t)c->D;
    const size_t rows = (size_t)max.B * (size_t)max.L;
    const size_t keys = (size_t)max.B * (size_t)(max.L + max.M);
    const size_t gate = c->gate ? rows * (size_t)c->gate->work * D : 0;

    CHECK(kind != MEM_KV);
    *w = *shared;
    w->q = keep(shared->q, first, a, rows * HD);
    w->k = keep(shared->k, first, a, keys * HD);
    w->v = keep(shared->v, first, a, keys * HD);
    w->o = keep(shared->o, first, a, rows * HD);
    w->hidden = keep(shared->hidden, first, a, rows * (size_t)c->F);
    w->lse = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)c->H);
    w->x = arena_f32(a, PART_ACTIVATIONS, rows * D);
    w->mid = keep(shared->mid, first && shared->mid, a, rows * D);
    if (c->norm == NORM_POST) {
        w->sum1 = arena_f32(a, PART_ACTIVATIONS, rows * D);
        w->sum2 = arena_f32(a, PART_ACTIVATIONS, rows * D);
        return;
    }
    w->n = keep(shared->n, first, a, keys * D);
    w->n2 = keep(shared->n2, first, a, rows * D);
    if (c->norm == NORM_REORDER) { /* y after its ReLU is an operand of the gate */
        w->y = keep(shared->y, first, a, rows * D);
        w->gate = gate ? keep(shared->gate, first, a, gate) : NULL;
        w->y2 = arena_f32(a, PART_ACTIVATIONS, rows * D);
        w->gate2 = gate ? arena_f32(a, PART_ACTIVATIONS, gate) : NULL;
    }
}

/* One array of struct work_grad; n = 0 where there is none. */
struct grad_array {
    float **at;
    enum part part;
    size_t n;
};
enum { GRAD_ARRAYS = 11 };

static void grad_arrays(struct grad_array out[GRAD_ARRAYS], struct work_grad *w,
                        const struct config *c, struct extent max)
{
    const int K = max.L + max.M;
    const size_t HD = (size_t)c->H * (size_t)c->dh, D = (size_t)c->D;
    const size_t rows = (size_t)max.B * (size_t)max.L, keys = (size_t)max.B * (size_t)K;
    const size_t normed = rows > (size_t)K ? rows : (size_t)K;
    const struct grad_array all[GRAD_ARRAYS] = {
        {&w->d_y, PART_ACTIVATIONS, rows * D},
        {&w->d_t, PART_ACTIVATIONS, rows * D},
        {&w->d_n, PART_ACTIVATIONS, keys * D},
        {&w->d_q, PART_ACTIVATIONS, rows * HD},
        {&w->d_k, PART_ACTIVATIONS, keys * HD},
        {&w->d_v, PART_ACTIVATIONS, keys * HD},
        {&w->d_o, PART_ACTIVATIONS, rows * HD},
        {&w->d_hidden, PART_ACTIVATIONS, rows * (size_t)c->F},
        {&w->gate, PART_ACTIVATIONS, c->gate ? rows * (size_t)c->gate->work_grad * D : 0},
        {&w->stats, PART_SCRATCH, NORM_STATS * normed},
        {&w->tables, PART_REL_POS, c->pos->n_tables_grad ? c->pos->n_tables_grad(c, K) : 0},
    };

    memcpy(out, all, sizeof(all));
}

enum status work_grad_bind(struct work_grad *w, const struct engine *g, const struct block *b,
                           struct extent max, struct arena *a, struct err *e)
{
    struct grad_array list[GRAD_ARRAYS];
    const enum status st = engine_attn_backward(g, b->impl, e);

    if (st != OK)
        return st;
    const struct attn_need need = b->impl->need_backward(&b->lowered, g->threads);
    *w = (struct work_grad){0};
    grad_arrays(list, w, b->c, max);
    for (int i = 0; i < GRAD_ARRAYS; i++)
        if (list[i].n)
            *list[i].at = arena_f32(a, list[i].part, list[i].n);
    w->attn = arena_take(a, PART_SCRATCH, need.scores_bytes + need.scratch_bytes);
    a->part[PART_SCRATCH] -= need.scores_bytes;
    a->part[PART_SCORES] += need.scores_bytes;
    return OK;
}

void work_grad_spoil(struct work_grad *w, const struct block *b, struct extent max)
{
    struct grad_array list[GRAD_ARRAYS];

    grad_arrays(list, w, b->c, max);
    for (int i = 0; i < GRAD_ARRAYS; i++)
        for (size_t e = 0; e < list[i].n; e++)
            (*list[i].at)[e] = NAN;
}

/* ---- pieces ------------------------------------------------------------------------------- */

/* Sequences whose rows follow one another become one. */
static void join_if_contiguous(struct rows x, int n, struct rows y, int m, int *B, int *rows)
{
    if (x.stride == (ptrdiff_t)*rows * n && y.stride == (ptrdiff_t)*rows * m) {
        *rows *= *B;
        *B = 1;
    }
}

/* Rows follow one another inside a sequence; sequences may be apart, in a cache. */
static void weight_grad(const struct engine *g, const struct param *w, struct rows d_y,
                        struct rows x, int B, int rows)
{
    join_if_contiguous(d_y, w->shape[0], x, w->shape[1], &B, &rows);
    for (int b = 0; b < B; b++)
        linear_weight_grad(g, w, d_y.at + b * d_y.stride, x.at + b * x.stride, rows);
}

static void input_grad(const struct engine *g, const struct param *w, struct rows d_x,
                       struct rows d_y, int B, int rows, float beta)
{
    join_if_contiguous(d_y, w->shape[0], d_x, w->shape[1], &B, &rows);
    for (int b = 0; b < B; b++)
        linear_input_grad(g, w, d_x.at + b * d_x.stride, d_y.at + b * d_y.stride, rows, beta);
}

static struct rows behind_memory(struct rows r, int M, int n)
{
    return (struct rows){r.at + (ptrdiff_t)M * n, r.stride};
}

static void add(const struct engine *g, float *dst, const float *x, int rows, int n)
{
    g->ops.act(
        &(struct act){.y = dst, .x = dst, .add = x, .rows = rows, .n = n, .threads = g->threads});
}

static void norm_grad(const struct engine *g, const struct config *c, const struct param *ln,
                      struct work_grad *d_w, float *d_x, const float *d_y, const float *x, int rows)
{
    g->ops.norm_grad(&(struct norm_grad){.d_x = d_x,
                                         .d_weight = ln[0].grad,
                                         .d_bias = ln[1].grad,
                                         .d_y = d_y,
                                         .x = x,
                                         .weight = ln[0].data,
                                         .stats = d_w->stats,
                                         .rows = rows,
                                         .n = c->D,
                                         .eps = c->ln_eps,
                                         .threads = g->threads});
}

static void relu_grad(const struct engine *g, float *d, const float *y, int rows, int n)
{
    g->ops.act_grad(&(struct act_grad){
        .kind = ACT_RELU, .d_x = d, .d_y = d, .y = y, .rows = rows, .n = n, .threads = g->threads});
}

/* ---- attention ---------------------------------------------------------------------------- */

/* [m; x] as it entered the layer. */
static struct rows entered(const struct block *b, enum mem_kind kind, const struct work *w, int L)
{
    if (kind == MEM_HIDDEN)
        return (struct rows){cache_rows(&b->hidden, 0), cache_stride(&b->hidden)};
    return (struct rows){w->x, (ptrdiff_t)L * b->c->D};
}

/* From d_y to the gradients of q, k, v and of the position scheme's weights. */
static void core_backward(const struct engine *g, struct block *b, enum mem_kind kind,
                          const struct work *w, struct work_grad *d_w, const float *d_y, int B,
                          int L)
{
    const struct config *c = b->c;
    const struct attn a = block_operands(b, kind, w, B, L);
    struct attn_grad d = {.d_o = d_w->d_o, .d_q = d_w->d_q, .d_k = d_w->d_k, .d_v = d_w->d_v};

    linear_weight_grad(g, &b->attn[ATTN_O], d_y, w->o, B * L);
    if (c->attn_bias)
        linear_bias_grad(g, &b->attn[ATTN_WEIGHTS + ATTN_O], d_y, B * L);
    linear_input_grad(g, &b->attn[ATTN_O], d_w->d_o, d_y, B * L, 0);
    if (c->pos->terms_grad)
        c->pos->terms_grad(c, b->model, b->pos, &a, d_w->tables, &d);
    b->impl->backward(g, &a, &d, d_w->attn);
    if (c->pos->lower_grad)
        c->pos->lower_grad(g, c, b->pos, w->codes, &a, &d);
}

void block_attention_backward(const struct engine *g, struct block *b, enum mem_kind kind,
                              const struct work *w, struct work_grad *d_w, float *d_in,
                              const float *d_y, int B, int L)
{
    const struct config *c = b->c;
    const bool post = c->norm == NORM_POST; /* then memory is left out of d_in, a constant */
    const int HD = c->H * c->dh, M = block_memory(b, kind), K = M + L;
    const struct param *W = b->attn, *bias = W + ATTN_WEIGHTS;

    CHECK(kind != MEM_KV);
    core_backward(g, b, kind, w, d_w, d_y, B, L);
    const struct rows from =
        post ? entered(b, kind, w, L) : (struct rows){w->n, (ptrdiff_t)K * c->D};
    const struct rows q = {d_w->d_q, (ptrdiff_t)L * HD}, k = {d_w->d_k, (ptrdiff_t)K * HD},
                      v = {d_w->d_v, (ptrdiff_t)K * HD};
    weight_grad(g, &W[ATTN_Q], q, behind_memory(from, M, c->D), B, L);
    weight_grad(g, &W[ATTN_K], k, from, B, K);
    weight_grad(g, &W[ATTN_V], v, from, B, K);
    if (c->attn_bias) {
        linear_bias_grad(g, &bias[ATTN_Q], q.at, B * L);
        linear_bias_grad(g, &bias[ATTN_K], k.at, B * K);
        linear_bias_grad(g, &bias[ATTN_V], v.at, B * K);
    }
    const int skip = post ? M : 0, rows = K - skip;
    const struct rows d = {d_in, (ptrdiff_t)rows * c->D};
    input_grad(g, &W[ATTN_K], d, behind_memory(k, skip, HD), B, rows, 0);
    input_grad(g, &W[ATTN_V], d, behind_memory(v, skip, HD), B, rows, 1);
    input_grad(g, &W[ATTN_Q], behind_memory(d, M - skip, c->D), q, B, L, 1);
}

/* The attention sub-layer and, where it has one, the norm in front: d += the gradient of x. */
static void attention_branch(const struct engine *g, struct block *b, enum mem_kind kind,
                             const struct work *w, struct work_grad *d_w, float *d,
                             const float *d_y, int B, int L)
{
    const struct config *c = b->c;
    const int K = block_memory(b, kind) + L;

    if (c->norm == NORM_POST) {
        block_attention_backward(g, b, kind, w, d_w, d_w->d_t, d_y, B, L);
        add(g, d, d_w->d_t, B * L, c->D);
        return;
    }
    const struct rows x = entered(b, kind, w, L);
    block_attention_backward(g, b, kind, w, d_w, d_w->d_n, d_y, B, L);
    for (int s = 0; s < B; s++) {
        float *d_n = d_w->d_n + (ptrdiff_t)s * K * c->D;
        norm_grad(g, c, b->ln1, d_w, d_n, d_n, x.at + s * x.stride, K);
        add(g, d + (ptrdiff_t)s * L * c->D, d_n + (ptrdiff_t)(K - L) * c->D, L, c->D);
    }
}

/* ---- the layer ---------------------------------------------------------------------------- */

/* d from the gradient of gate(x, relu(y)) to that of x; d_y to that of y before its ReLU. */
static void gate_backward(const struct engine *g, const struct config *c, const struct param *gate,
                          struct work_grad *d_w, float *d, const float *x, const float *y,
                          float *work, int rows)
{
    c->gate->backward(g, c, gate, d, d_w->d_y, d, x, y, rows, work, d_w->gate);
    relu_grad(g, d_w->d_y, y, rows, c->D);
}

static void ffn_backward(const struct engine *g, const struct block *b, const struct work *w,
                         struct work_grad *d_w, const float *x, const float *d_y, int rows)
{
    b->c->ffn->backward(g, b->c, b->ff, d_w->d_t, d_y, x, rows, w->hidden, d_w->d_hidden, &w->drop);
}

/* The gradient of a sub-layer's output before dropout, from that of the sum it went into, which the
 * stream still needs. */
static const float *undropped(const struct engine *g, const struct config *c, const struct work *w,
                              struct work_grad *d_w, enum drop_place place, const float *d,
                              int rows)
{
    const size_t n = (size_t)rows * (size_t)c->D;

    if (w->drop.p == 0)
        return d;
    memcpy(d_w->d_y, d, n * sizeof(float));
    dropout(&w->drop, place, d_w->d_y, n, g->threads);
    return d_w->d_y;
}

void block_backward(const struct engine *g, struct block *b, enum mem_kind kind,
                    const struct work *w, struct work_grad *d_w, float *d, int B, int L)
{
    const struct config *c = b->c;
    const int rows = B * L;

    switch (c->norm) {
    case NORM_POST:
        norm_grad(g, c, b->ln2, d_w, d, d, w->sum2, rows);
        ffn_backward(g, b, w, d_w, w->mid, undropped(g, c, w, d_w, DROP_FFN, d, rows), rows);
        add(g, d, d_w->d_t, rows, c->D);
        norm_grad(g, c, b->ln1, d_w, d, d, w->sum1, rows);
        attention_branch(g, b, kind, w, d_w, d, undropped(g, c, w, d_w, DROP_ATTENTION, d, rows), B,
                         L);
        break;
    case NORM_PRE:
        ffn_backward(g, b, w, d_w, w->n2, undropped(g, c, w, d_w, DROP_FFN, d, rows), rows);
        norm_grad(g, c, b->ln2, d_w, d_w->d_t, d_w->d_t, w->mid, rows);
        add(g, d, d_w->d_t, rows, c->D);
        attention_branch(g, b, kind, w, d_w, d, undropped(g, c, w, d_w, DROP_ATTENTION, d, rows), B,
                         L);
        break;
    case NORM_REORDER:
        gate_backward(g, c, b->gate2, d_w, d, w->mid, w->y2, w->gate2, rows);
        dropout(&w->drop, DROP_FFN, d_w->d_y, (size_t)rows * (size_t)c->D, g->threads);
        ffn_backward(g, b, w, d_w, w->n2, d_w->d_y, rows);
        norm_grad(g, c, b->ln2, d_w, d_w->d_t, d_w->d_t, w->mid, rows);
        add(g, d, d_w->d_t, rows, c->D);
        gate_backward(g, c, b->gate1, d_w, d, w->x, w->y, w->gate, rows);
        dropout(&w->drop, DROP_ATTENTION, d_w->d_y, (size_t)rows * (size_t)c->D, g->threads);
        attention_branch(g, b, kind, w, d_w, d, d_w->d_y, B, L);
        break;
    case NORM_COUNT:
        CHECK(!"a place for the norm");
    }
    if (c->pos->enter_grad)
        c->pos->enter_grad(c, b->pos, d, B, L);
}

/* ---- cost --------------------------------------------------------------------------------- */

double block_grad_flop(const struct block *b, enum mem_kind kind, int B, int L, int M)
{
    const struct config *c = b->c;
    const double HD = (double)c->H * c->dh, rows = (double)B * L;
    const double projected = kind == MEM_HIDDEN ? (double)B * (M + L) : rows;
    const bool post = c->norm == NORM_POST; /* else memory goes through a norm, which has weights */
    struct attn a = b->lowered;

    attn_resize(&a, L, M);
    a.B = B;
    double flop = attn_grad_flop(&a) + 8 * rows * c->D * HD   /* W_q, W_o: dX and dW */
                  + 4 * projected * c->D * HD                 /* dW_k, dW_v */
                  + 4 * (post ? rows : projected) * c->D * HD /* dX through them */
                  + 2 * c->ffn->flop(c, B * L);
    if (c->gate)
        flop += 2 * 2 * 2.0 * c->gate->n_matrices * rows * c->D * c->D;
    return flop;
}
