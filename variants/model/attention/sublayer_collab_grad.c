/* SPDX-License-Identifier: MIT
 *
 * Collaborative heads, backward: W_o, the core of each sequence with keys of every head, whose
 * gradients are summed, then the weights of coordinates and the projections. */
#include "sublayer_collab.h"
#include "variants/model/sublayer/sublayer_inner.h"
#include "variants/parts/linear.h"

#include <string.h>

/* One sequence. The core writes a gradient of keys for each head. */
static void core_grad(const struct engine *g, const struct sublayer *s, const struct work *w, int L,
                      int b)
{
    struct attn a = collab_core(s, w, L, b);
    const ptrdiff_t H = s->c->H, K = attn_keys(&a), n = K * a.dh;
    float *const keys = w->d_array[CO_KEYS], *const d_keys = w->d_array[CO_KEYS_GRAD];
    float *const d_k = w->d_array[CO_K] + b * n;

    for (ptrdiff_t h = 0; h < H; h++)
        memcpy(keys + h * n, a.k, sizeof(float) * (size_t)n);
    const struct attn_grad d = {
        .d_o = w->d_array[CO_O] + (a.o - w->array[CO_O]),
        .d_q = w->d_array[CO_Q] + (a.q - w->array[CO_Q]),
        .d_k = d_keys,
        .d_v = w->d_array[CO_V] + (a.v - w->array[CO_V]),
        .d_add = a.add.at ? w->d_array[CO_ADD] + (a.add.at - w->array[CO_ADD]) : NULL,
    };
    a.k = keys;
    a.k_at = (struct stride){n, a.dh};
    if (d.d_add)
        memset(d.d_add, 0, sizeof(float) * (size_t)(H * K));
    s->state.attention.impl->backward(g, &a, &d, w->d_scratch);
    memcpy(d_k, d_keys, sizeof(float) * (size_t)n);
    for (ptrdiff_t h = 1; h < H; h++)
        for (ptrdiff_t e = 0; e < n; e++)
            d_k[e] += d_keys[h * n + e];
}

/* To the shared queries [rows,Dk]; dm_he = sum_i dq_hie q_ie. */
static void weigh_queries_grad(const struct sublayer *s, const struct work *w, int rows)
{
    const ptrdiff_t H = s->c->H, dk = collab_of(s->c)->dk;
    const struct param *const mix = collab_param(s, CO_W_MIX);
    float *const d_low = w->d_array[CO_Q_LOW];

    memset(d_low, 0, sizeof(float) * (size_t)(rows * dk));
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t h = 0; h < H; h++) {
            const float *const d = w->d_array[CO_Q] + (i * H + h) * dk;
            const float *const q = w->array[CO_Q_LOW] + i * dk;
            for (ptrdiff_t e = 0; e < dk; e++) {
                d_low[i * dk + e] += d[e] * mix->data[h * dk + e];
                mix->grad[h * dk + e] += d[e] * q[e];
            }
        }
}

/* [B,K,H] from the gradient of what is added to scores [B,H,K]. */
static void content_grad(const struct sublayer *s, const struct work *w, int B, int K)
{
    const ptrdiff_t H = s->c->H;

    for (ptrdiff_t i = 0; i < (ptrdiff_t)B * K * H; i++)
        w->d_array[CO_CONTENT][i] =
            s->c->scale * w->d_array[CO_ADD][(i / H / K * H + i % H) * K + i / H % K];
}

/* A map of rows x, and the gradient d_x of them without the first `skip` of each sequence. */
struct map_rows {
    const struct param *weight, *bias; /* bias: or NULL */
    struct seq_rows x, d_x;
    int B, rows, skip;
};

static void map_grad(const struct engine *g, struct map_rows m, float *d_y, float beta)
{
    const ptrdiff_t out = m.weight->shape[0];
    const struct seq_rows d = {d_y, m.rows * out}, kept = {d_y + m.skip * out, d.stride};

    project_weight_grad(g, m.weight, d, m.x, m.B, m.rows);
    if (m.bias)
        linear_bias_grad(g, m.bias, d_y, m.B * m.rows);
    project_input_grad(g, m.weight, m.d_x, kept, m.B, m.rows - m.skip, beta);
}

void collab_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                     struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    const int B = from.B, L = from.L, K = from.M + L;
    const ptrdiff_t D = s->c->D;
    const struct param *const out = collab_param(s, CO_W_O), *const bias = collab_bias(s, CO_W_O);
    const struct seq_rows d_all = {d_in, (K - skip) * D};

    CHECK(s->mem != MEM_KV);
    linear_backward(g, out, bias, w->d_array[CO_O], d_y, w->array[CO_O], B * L, 0);
    for (int b = 0; b < B; b++)
        core_grad(g, s, w, L, b);
    weigh_queries_grad(s, w, B * L);
    struct map_rows map = {.x = from.at, .d_x = d_all, .B = B, .rows = K, .skip = skip};
    map.weight = collab_param(s, CO_W_K);
    map.bias = collab_bias(s, CO_W_K);
    map_grad(g, map, w->d_array[CO_K], 0);
    map.weight = collab_param(s, CO_W_V);
    map.bias = collab_bias(s, CO_W_V);
    map_grad(g, map, w->d_array[CO_V], 1);
    if (collab_of(s->c)->content_bias) {
        content_grad(s, w, B, K);
        map.weight = collab_param(s, CO_W_CONTENT);
        map.bias = NULL;
        map_grad(g, map, w->d_array[CO_CONTENT], 1);
    }
    const struct map_rows queries = {
        .weight = collab_param(s, CO_W_Q),
        .bias = collab_bias(s, CO_W_Q),
        .x = {from.at.at + from.M * D, from.at.stride},
        .d_x = {d_in + (from.M - skip) * D, d_all.stride},
        .B = B,
        .rows = L,
    };
    map_grad(g, queries, w->d_array[CO_Q_LOW], 1);
}
