/* SPDX-License-Identifier: MIT
 *
 * Attention as a kind of sub-layer, backward: W_o, the implementation's own backward pass, the
 * position scheme's tables, and the projections of memory and new rows. */
#include "parts/linear.h"
#include "sub_attention.h"

/* Sequences whose rows follow one another become one. */
static void join_if_contiguous(struct seq_rows x, int n, struct seq_rows y, int m, int *B,
                               int *rows)
{
    if (x.stride == (ptrdiff_t)*rows * n && y.stride == (ptrdiff_t)*rows * m) {
        *rows *= *B;
        *B = 1;
    }
}

/* Rows follow one another inside a sequence; sequences may be apart, in a cache. */
static void weight_grad(const struct engine *g, const struct param *w, struct seq_rows d_y,
                        struct seq_rows x, int B, int rows)
{
    join_if_contiguous(d_y, w->shape[0], x, w->shape[1], &B, &rows);
    for (int b = 0; b < B; b++)
        linear_weight_grad(g, w, d_y.at + b * d_y.stride, x.at + b * x.stride, rows);
}

static void input_grad(const struct engine *g, const struct param *w, struct seq_rows d_x,
                       struct seq_rows d_y, int B, int rows, float beta)
{
    join_if_contiguous(d_y, w->shape[0], d_x, w->shape[1], &B, &rows);
    for (int b = 0; b < B; b++)
        linear_input_grad(g, w, d_x.at + b * d_x.stride, d_y.at + b * d_y.stride, rows, beta);
}

static struct seq_rows behind_memory(struct seq_rows r, int M, int n)
{
    return (struct seq_rows){r.at + (ptrdiff_t)M * n, r.stride};
}

/* From d_y to the gradients of q, k, v and of the position scheme's weights. */
static void core_backward(const struct engine *g, struct sub *s, const struct work *w,
                          const float *d_y, int B, int L)
{
    const struct config *c = s->c;
    const struct attention *t = &s->of.attention;
    const struct attn a = attention_operands(s, w, B, L);
    const int64_t base = attention_base(s);
    struct attn_grad d = {
        .d_o = w->d_own[AT_O], .d_q = w->d_own[AT_Q], .d_k = w->d_own[AT_K], .d_v = w->d_own[AT_V]};

    linear_weight_grad(g, &s->own[ATTN_O], d_y, w->own[AT_O], B * L);
    if (c->attn_bias)
        linear_bias_grad(g, &s->own[ATTN_WEIGHTS + ATTN_O], d_y, B * L);
    linear_input_grad(g, &s->own[ATTN_O], w->d_own[AT_O], d_y, B * L, 0);
    if (c->pos->terms_grad)
        c->pos->terms_grad(c, s->model, t->pos, &a, w->d_own[AT_D_TABLES], &d);
    t->impl->backward(g, &a, &d, w->d_scratch);
    attention_rotate(g, s, (struct seq_rows){d.d_q, a.q_at.batch}, B, L, c->H, base + a.M, true);
    attention_rotate(g, s, (struct seq_rows){d.d_k, a.k_at.batch}, B, a.M + L, c->kv_heads, base,
                     true);
    if (c->pos->lower_grad)
        c->pos->lower_grad(g, c, s->model, t->pos, w->codes, &a, &d);
}

void attention_backward(const struct engine *g, struct sub *s, const struct work *w,
                        struct sub_input from, float *d_in, const float *d_y, int skip)
{
    const struct config *c = s->c;
    const int HD = c->H * c->dh, kv_width = c->kv_heads * c->dh;
    const int B = from.B, M = from.M, L = from.L, K = M + L, rows = K - skip;
    const struct param *W = s->own, *bias = W + ATTN_WEIGHTS;

    CHECK(s->mem != MEM_KV);
    core_backward(g, s, w, d_y, B, L);
    const struct seq_rows q = {w->d_own[AT_Q], (ptrdiff_t)L * HD},
                          k = {w->d_own[AT_K], (ptrdiff_t)K * kv_width},
                          v = {w->d_own[AT_V], (ptrdiff_t)K * kv_width},
                          d = {d_in, (ptrdiff_t)rows * c->D};
    weight_grad(g, &W[ATTN_Q], q, behind_memory(from.at, M, c->D), B, L);
    weight_grad(g, &W[ATTN_K], k, from.at, B, K);
    weight_grad(g, &W[ATTN_V], v, from.at, B, K);
    if (c->attn_bias) {
        linear_bias_grad(g, &bias[ATTN_Q], q.at, B * L);
        linear_bias_grad(g, &bias[ATTN_K], k.at, B * K);
        linear_bias_grad(g, &bias[ATTN_V], v.at, B * K);
    }
    input_grad(g, &W[ATTN_K], d, behind_memory(k, skip, kv_width), B, rows, 0);
    input_grad(g, &W[ATTN_V], d, behind_memory(v, skip, kv_width), B, rows, 1);
    input_grad(g, &W[ATTN_Q], behind_memory(d, M - skip, c->D), q, B, L, 1);
}

double attention_grad_flop(const struct sub *s, int B, int L, int M)
{
    const struct config *c = s->c;
    const double HD = (double)c->H * c->dh, kv_width = (double)c->kv_heads * c->dh;
    const double rows = (double)B * L;
    const double projected = s->mem == MEM_HIDDEN ? (double)B * (M + L) : rows;
    /* Memory is a constant unless it goes through a norm, which has weights. */
    const double reached = wiring_norms_first(s->wiring) ? projected : rows;
    struct attn a = s->of.attention.lowered;

    attn_resize(&a, L, M);
    a.B = B;
    return attn_grad_flop(&a) + 8 * rows * c->D * HD /* W_q, W_o: dX and dW */
           + 4 * projected * c->D * kv_width         /* dW_k, dW_v */
           + 4 * reached * c->D * kv_width /* dX through them */;
}
