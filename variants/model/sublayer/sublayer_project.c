/* SPDX-License-Identifier: MIT
 *
 * Queries, keys, values and outputs: the linear maps around attention or its replacement. */
#include "sublayer_project.h"
#include "sublayer_inner.h"
#include "variants/parts/linear.h"

/* Of the four maps, those that are missing: the first, or the last. */
static int missing(bool asks) { return asks ? 0 : ATTN_V; }
static int after_last(bool bare_o) { return bare_o ? ATTN_O : ATTN_WEIGHTS; }
static int n_biases(const struct sublayer *s)
{
    const int end = after_last(s->bare_o || s->c->attn_bias == ATTN_BIASED_QKV);

    return s->c->attn_bias ? end - missing(s->asks) : 0;
}

void project_params(const struct sublayer *s, int in, int kv_in, const char *prefix,
                    struct params *p)
{
    static const char *const names[ATTN_WEIGHTS][2] = {{"attn.q.weight", "attn.q.bias"},
                                                       {"attn.k.weight", "attn.k.bias"},
                                                       {"attn.v.weight", "attn.v.bias"},
                                                       {"attn.o.weight", "attn.o.bias"}};
    const struct config *const c = s->c;
    const int HD = config_q_width(c), kv_width = config_kv_width(c);
    const int rows[ATTN_WEIGHTS] = {HD, kv_width, kv_width, c->D};
    const int columns[ATTN_WEIGHTS] = {in, kv_in, kv_in, HD};

    for (int i = missing(s->asks); i < after_last(s->bare_o); i++)
        params_map(p, rows[i], columns[i], prefix, names[i][0]);
    if (!s->bare_o)
        params_residual(p, p->n - 1);
    for (int i = 0; i < n_biases(s); i++)
        params_vector(p, INIT_ZERO, 0, rows[missing(s->asks) + i], prefix,
                      names[missing(s->asks) + i][1]);
}

/* One of them. Without queries and keys the first two are missing. */
static const struct param *project_weight(const struct sublayer *s, int which)
{
    CHECK(which >= missing(s->asks) && which < after_last(s->bare_o));
    return s->weights + which - missing(s->asks);
}

int project_n_params(const struct sublayer *s)
{
    return after_last(s->bare_o) - missing(s->asks) + n_biases(s);
}

static const struct param *bias(const struct sublayer *s, int which)
{
    return which - missing(s->asks) < n_biases(s)
               ? project_weight(s, which) + after_last(s->bare_o) - missing(s->asks)
               : NULL;
}

/* Treat sequences with contiguous rows as one. */
static void join_if_contiguous(struct seq_rows x, int n, struct seq_rows y, int m, int *B,
                               int *rows)
{
    if (x.stride == (ptrdiff_t)*rows * n && y.stride == (ptrdiff_t)*rows * m) {
        *rows *= *B;
        *B = 1;
    }
}

/* One product if both are contiguous, otherwise one per sequence (in a cache). */
void project_map(const struct engine *g, const struct param *w, const struct param *b,
                 struct seq_rows y, struct seq_rows x, int B, int rows)
{
    join_if_contiguous(x, w->shape[1], y, w->shape[0], &B, &rows);
    for (int i = 0; i < B; i++) {
        float *dst = y.at + i * y.stride;
        linear_forward(g, w, b, dst, x.at + i * x.stride, rows, (struct act){.y = dst});
    }
}

void project_rows(const struct engine *g, const struct sublayer *s, int which, struct seq_rows y,
                  struct seq_rows x, int B, int rows)
{
    project_map(g, project_weight(s, which), bias(s, which), y, x, B, rows);
}

void project_out(const struct engine *g, const struct sublayer *s, struct work *w, const float *o,
                 int rows, struct act epilogue)
{
    linear_forward(g, project_weight(s, ATTN_O), bias(s, ATTN_O), w->y, o, rows, epilogue);
}

/* ---- backward ----------------------------------------------------------------------------- */

void project_out_grad(const struct engine *g, const struct sublayer *s, float *d_o,
                      const float *d_y, const float *o, int rows)
{
    linear_backward(g, project_weight(s, ATTN_O), bias(s, ATTN_O), d_o, d_y, o, rows, 0);
}

/* Rows are contiguous within a sequence; sequences may be apart, in a cache. */
void project_weight_grad(const struct engine *g, const struct param *w, struct seq_rows d_y,
                         struct seq_rows x, int B, int rows)
{
    join_if_contiguous(d_y, w->shape[0], x, w->shape[1], &B, &rows);
    for (int b = 0; b < B; b++)
        linear_weight_grad(g, w, d_y.at + b * d_y.stride, x.at + b * x.stride, rows);
}

void project_input_grad(const struct engine *g, const struct param *w, struct seq_rows d_x,
                        struct seq_rows d_y, int B, int rows, float beta)
{
    join_if_contiguous(d_y, w->shape[0], d_x, w->shape[1], &B, &rows);
    for (int b = 0; b < B; b++)
        linear_input_grad(g, w, d_x.at + b * d_x.stride, d_y.at + b * d_y.stride, rows, beta);
}

static struct seq_rows after_memory(struct seq_rows r, int M, int n)
{
    return (struct seq_rows){r.at + (ptrdiff_t)M * n, r.stride};
}

static void kv_backward(const struct engine *g, const struct sublayer *s, int in,
                        struct sublayer_input from, float *d_in, struct project_grad d_of, int skip)
{
    const int kv_width = config_kv_width(s->c);
    const int B = from.B, K = from.M + from.L, rows = K - skip;
    const struct seq_rows k = {d_of.d_k, (ptrdiff_t)K * kv_width},
                          v = {d_of.d_v, (ptrdiff_t)K * kv_width}, d = {d_in, (ptrdiff_t)rows * in};

    for (int which = s->asks ? ATTN_K : ATTN_V; which <= ATTN_V; which++) {
        const struct seq_rows d_y = which == ATTN_K ? k : v;
        const bool first = which == ATTN_K || !s->asks;
        project_weight_grad(g, project_weight(s, which), d_y, from.at, B, K);
        if (s->c->attn_bias)
            linear_bias_grad(g, bias(s, which), d_y.at, B * K);
        project_input_grad(g, project_weight(s, which), d, after_memory(d_y, skip, kv_width), B,
                           rows, first ? 0 : 1);
    }
}

/* For the rows x, L of each sequence; adds to beta times d_x. */
static void q_backward(const struct engine *g, const struct sublayer *s, struct seq_rows x,
                       struct seq_rows d_x, float *d_q, int B, int L, float beta)
{
    const struct seq_rows q = {d_q, (ptrdiff_t)L * config_q_width(s->c)};

    project_weight_grad(g, project_weight(s, ATTN_Q), q, x, B, L);
    if (s->c->attn_bias)
        linear_bias_grad(g, bias(s, ATTN_Q), d_q, B * L);
    project_input_grad(g, project_weight(s, ATTN_Q), d_x, q, B, L, beta);
}

void project_backward(const struct engine *g, const struct sublayer *s, int in,
                      struct sublayer_input from, float *d_in, struct project_grad d, int skip)
{
    const struct seq_rows d_rows = {d_in, (ptrdiff_t)(from.M + from.L - skip) * in};

    kv_backward(g, s, in, from, d_in, d, skip);
    if (s->asks)
        q_backward(g, s, after_memory(from.at, from.M, in), after_memory(d_rows, from.M - skip, in),
                   d.d_q, from.B, from.L, 1);
}

void project_pooled_backward(const struct engine *g, const struct sublayer *s,
                             struct sublayer_input from, const float *pooled, float *d_in,
                             float *d_pooled, struct project_grad d)
{
    const int groups = pool_groups(s->c, from.L, 1);
    const ptrdiff_t n = (ptrdiff_t)groups * s->c->D;

    kv_backward(g, s, s->c->D, from, d_in, d, 0);
    q_backward(g, s, (struct seq_rows){(float *)pooled, n}, (struct seq_rows){d_pooled, n}, d.d_q,
               from.B, groups, 0);
}
