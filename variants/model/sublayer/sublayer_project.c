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

const char *const project_names[ATTN_WEIGHTS][2] = {{"attn.q.weight", "attn.q.bias"},
                                                    {"attn.k.weight", "attn.k.bias"},
                                                    {"attn.v.weight", "attn.v.bias"},
                                                    {"attn.o.weight", "attn.o.bias"}};

void project_params(const struct sublayer *s, int in, int kv_in, const char *prefix,
                    struct params *p)
{
    const struct config *const c = s->c;
    const int HD = config_q_width(c), kv_width = config_kv_width(c);
    const int rows[ATTN_WEIGHTS] = {HD, kv_width, kv_width, c->D};
    const int columns[ATTN_WEIGHTS] = {in, kv_in, kv_in, HD};

    for (int i = missing(s->asks); i < after_last(s->bare_o); i++)
        params_map(p, rows[i], columns[i], prefix, project_names[i][0]);
    if (!s->bare_o)
        params_residual(p, p->n - 1);
    for (int i = 0; i < n_biases(s); i++)
        params_vector(p, INIT_ZERO, 0, rows[missing(s->asks) + i], prefix,
                      project_names[missing(s->asks) + i][1]);
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

void project_map_grad(const struct engine *g, const struct param *w, const struct param *b,
                      const float *d_y, struct sublayer_input from, int first, float *d_in,
                      int skip, float beta)
{
    const ptrdiff_t out = w->shape[0], in = w->shape[1];
    const int K = from.M + from.L, rows = K - first, late = max_int(skip, first);
    const struct seq_rows d = {(float *)d_y, rows * out},
                          wanted = {d.at + (late - first) * out, d.stride};

    project_weight_grad(g, w, d, (struct seq_rows){from.at.at + first * in, from.at.stride}, from.B,
                        rows);
    if (b)
        linear_bias_grad(g, b, d_y, from.B * rows);
    project_input_grad(g, w, (struct seq_rows){d_in + (late - skip) * in, (K - skip) * in}, wanted,
                       from.B, K - late, beta);
}

/* One of q, k and v, of the rows from `first` on. */
static void map_grad(const struct engine *g, const struct sublayer *s, int which, const float *d_y,
                     struct sublayer_input from, int first, float *d_in, int skip, float beta)
{
    project_map_grad(g, project_weight(s, which), bias(s, which), d_y, from, first, d_in, skip,
                     beta);
}

static void kv_backward(const struct engine *g, const struct sublayer *s,
                        struct sublayer_input from, float *d_in, struct project_grad d, int skip)
{
    if (s->asks)
        map_grad(g, s, ATTN_K, d.d_k, from, 0, d_in, skip, 0);
    map_grad(g, s, ATTN_V, d.d_v, from, 0, d_in, skip, s->asks);
}

void project_backward(const struct engine *g, const struct sublayer *s, struct sublayer_input from,
                      float *d_in, struct project_grad d, int skip)
{
    kv_backward(g, s, from, d_in, d, skip);
    if (s->asks)
        map_grad(g, s, ATTN_Q, d.d_q, from, from.M, d_in, skip, 1);
}

void project_pooled_backward(const struct engine *g, const struct sublayer *s,
                             struct sublayer_input from, const float *pooled, float *d_in,
                             float *d_pooled, struct project_grad d)
{
    const int groups = pool_groups(s->c, from.L, 1);
    const struct seq_rows rows = {(float *)pooled, (ptrdiff_t)groups * s->c->D};

    kv_backward(g, s, from, d_in, d, 0);
    map_grad(g, s, ATTN_Q, d.d_q, (struct sublayer_input){rows, from.B, 0, groups}, 0, d_pooled, 0,
             0);
}
