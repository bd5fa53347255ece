/* SPDX-License-Identifier: MIT
 *
 * Queries, keys, values and outputs: the linear maps around a core. */
#include "sub_project.h"
#include "parts/linear.h"

void project_params(const struct config *c, int in, const char *prefix, struct params *p)
{
    const int HD = c->H * c->dh, kv_width = c->kv_heads * c->dh;

    params_matrix(p, HD, in, prefix, "attn.q.weight");
    params_matrix(p, kv_width, in, prefix, "attn.k.weight");
    params_matrix(p, kv_width, in, prefix, "attn.v.weight");
    params_matrix(p, c->D, HD, prefix, "attn.o.weight");
    if (c->attn_bias) {
        params_vector(p, INIT_ZERO, 0, HD, prefix, "attn.q.bias");
        params_vector(p, INIT_ZERO, 0, kv_width, prefix, "attn.k.bias");
        params_vector(p, INIT_ZERO, 0, kv_width, prefix, "attn.v.bias");
        params_vector(p, INIT_ZERO, 0, c->D, prefix, "attn.o.bias");
    }
}

static const struct param *bias(const struct sub *s, int which)
{
    return s->c->attn_bias ? &s->own[ATTN_WEIGHTS + which] : NULL;
}

/* Sequences whose rows follow one another become one. */
static void join_if_contiguous(struct seq_rows x, int n, struct seq_rows y, int m, int *B,
                               int *rows)
{
    if (x.stride == (ptrdiff_t)*rows * n && y.stride == (ptrdiff_t)*rows * m) {
        *rows *= *B;
        *B = 1;
    }
}

/* One product where both are contiguous, one per sequence where they lie in a cache. */
void project_rows(const struct engine *g, const struct sub *s, int which, struct seq_rows y,
                  struct seq_rows x, int B, int rows)
{
    const struct param *const w = &s->own[which];

    join_if_contiguous(x, w->shape[1], y, w->shape[0], &B, &rows);
    for (int i = 0; i < B; i++) {
        float *dst = y.at + i * y.stride;
        linear_forward(g, w, bias(s, which), dst, x.at + i * x.stride, rows,
                       (struct act){.y = dst});
    }
}

void project_out(const struct engine *g, const struct sub *s, struct work *w, const float *o,
                 int rows, struct act leave)
{
    linear_forward(g, &s->own[ATTN_O], bias(s, ATTN_O), w->y, o, rows, leave);
}

/* ---- backward ------------------------------------------------------------------------------- */

void project_out_grad(const struct engine *g, const struct sub *s, float *d_o, const float *d_y,
                      const float *o, int rows)
{
    linear_weight_grad(g, &s->own[ATTN_O], d_y, o, rows);
    if (s->c->attn_bias)
        linear_bias_grad(g, &s->own[ATTN_WEIGHTS + ATTN_O], d_y, rows);
    linear_input_grad(g, &s->own[ATTN_O], d_o, d_y, rows, 0);
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

void project_backward(const struct engine *g, const struct sub *s, int in, struct sub_input from,
                      float *d_in, struct project_grad d_of, int skip)
{
    const struct config *c = s->c;
    const int HD = c->H * c->dh, kv_width = c->kv_heads * c->dh;
    const int B = from.B, M = from.M, L = from.L, K = M + L, rows = K - skip;
    const struct param *W = s->own, *bias = W + ATTN_WEIGHTS;
    const struct seq_rows q = {d_of.d_q, (ptrdiff_t)L * HD},
                          k = {d_of.d_k, (ptrdiff_t)K * kv_width},
                          v = {d_of.d_v, (ptrdiff_t)K * kv_width}, d = {d_in, (ptrdiff_t)rows * in};

    weight_grad(g, &W[ATTN_Q], q, behind_memory(from.at, M, in), B, L);
    weight_grad(g, &W[ATTN_K], k, from.at, B, K);
    weight_grad(g, &W[ATTN_V], v, from.at, B, K);
    if (c->attn_bias) {
        linear_bias_grad(g, &bias[ATTN_Q], q.at, B * L);
        linear_bias_grad(g, &bias[ATTN_K], k.at, B * K);
        linear_bias_grad(g, &bias[ATTN_V], v.at, B * K);
    }
    input_grad(g, &W[ATTN_K], d, behind_memory(k, skip, kv_width), B, rows, 0);
    input_grad(g, &W[ATTN_V], d, behind_memory(v, skip, kv_width), B, rows, 1);
    input_grad(g, &W[ATTN_Q], behind_memory(d, M - skip, in), q, B, L, 1);
}
