/* SPDX-License-Identifier: MIT
 *
 * The funnel, backward: funnel_net.c in reverse order. */
#include "funnel_inner.h"

#include <string.h>

static void add(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

/* Attention of one layer: from d_o to d_q, d_k, d_v, and the gradients of its terms. */
static void core_grad(struct funnel *f, const struct engine *g, struct funnel_layer *l)
{
    const int D = f->c.D, dh = f->c.dh;
    const struct param *p = &f->params.v[l->first];
    const size_t n = (size_t)l->rows_rel * (size_t)f->c.H * (size_t)dh;
    const struct attn_grad d = {.d_o = f->d_o,
                                .d_q = f->d_q,
                                .d_k = f->d_k,
                                .d_v = f->d_v,
                                .d_u = p[FUNNEL_U].grad,
                                .d_w = p[FUNNEL_W].grad,
                                .d_rel_k = f->d_rel};

    memset(f->d_rel, 0, n * sizeof(float));
    l->impl->backward(g, &l->a, &d, f->scratch);
    for (int h = 0; h < f->c.H; h++)
        g->ops.gemm(&(struct gemm){.ta = true,
                                   .m = dh,
                                   .n = D,
                                   .k = l->rows_rel,
                                   .alpha = 1,
                                   .beta = 1,
                                   .a = f->d_rel + h * l->a.rel_head,
                                   .lda = dh,
                                   .b = l->pos_encoding,
                                   .ldb = D,
                                   .c = p[FUNNEL_R].grad + (ptrdiff_t)h * dh * D,
                                   .ldc = D,
                                   .threads = g->threads});
}

/* d [B,Lq,D]: from the gradient of the layer's output to that of q_in; d_kv [B,Lk,D]: that of
 * kv_in. */
static void layer_backward(struct funnel *f, const struct engine *g, struct funnel_layer *l,
                           float *d, float *d_kv)
{
    const struct config *c = &f->c;
    const struct param *p = &f->params.v[l->first];
    const struct dropout none = {0};
    const int nq = f->B * l->Lq, nk = f->B * l->Lk;
    float *const d_ffn = d_kv; /* unused until then */

    norm_backward(g, c, &p[FUNNEL_LN2], d, d, l->sum2, f->stats, nq);
    c->ffn->backward(g, c, &p[FUNNEL_FFN], d_ffn, d, l->y, nq, l->ffn, f->grad_work, &none);
    add(d, d_ffn, (size_t)nq * (size_t)c->D);
    norm_backward(g, c, &p[FUNNEL_LN1], d, d, l->sum1, f->stats, nq);
    linear_weight_grad(g, &p[FUNNEL_O], d, l->o, nq);
    linear_bias_grad(g, &p[FUNNEL_O_BIAS], d, nq);
    linear_input_grad(g, &p[FUNNEL_O], f->d_o, d, nq, 0);
    core_grad(f, g, l);
    linear_weight_grad(g, &p[FUNNEL_Q], f->d_q, l->q_in, nq);
    linear_weight_grad(g, &p[FUNNEL_K], f->d_k, l->kv_in, nk);
    linear_weight_grad(g, &p[FUNNEL_V], f->d_v, l->kv_in, nk);
    linear_bias_grad(g, &p[FUNNEL_K_BIAS], f->d_k, nk);
    linear_bias_grad(g, &p[FUNNEL_V_BIAS], f->d_v, nk);
    linear_input_grad(g, &p[FUNNEL_Q], d, f->d_q, nq, 1);
    linear_input_grad(g, &p[FUNNEL_K], d_kv, f->d_k, nk, 0);
    linear_input_grad(g, &p[FUNNEL_V], d_kv, f->d_v, nk, 1);
}

/* d [B,Lk,D] += the gradient of the rows that were pooled into queries with d_q [B,Lq,D]. */
static void unpool(float *d, const float *d_q, int B, int Lq, int Lk, int D)
{
    for (int b = 0; b < B; b++)
        for (int j = 0; j < Lk; j++) {
            const float share = j == Lk - 1 && Lk % 2 ? 1 : 0.5f;
            for (int e = 0; e < D; e++)
                d[((ptrdiff_t)b * Lk + j) * D + e] +=
                    share * d_q[((ptrdiff_t)b * Lq + j / 2) * D + e];
        }
}

/* Sums over the tokens of every pool group at the top. */
static void top_grad(const struct funnel *f, float *d_top, const float *d)
{
    const int D = f->c.D, step = funnel_step(f), groups = funnel_groups(f);

    memset(d_top, 0, sizeof(float) * (size_t)f->B * (size_t)groups * (size_t)D);
    for (int b = 0; b < f->B; b++)
        for (int t = 0; t < f->T; t++) {
            const int group = funnel_group(f, t, step);
            if (group >= 0)
                add(d_top + ((ptrdiff_t)b * groups + group) * D, d + ((ptrdiff_t)b * f->T + t) * D,
                    (size_t)D);
        }
}

/* Through layer i; *d and *other swap roles. */
static void step_back(struct funnel *f, const struct engine *g, int i, float **d, float **other)
{
    struct funnel_layer *const l = &f->at[i];
    const size_t n = (size_t)f->B * (size_t)l->Lk * (size_t)f->c.D;

    layer_backward(f, g, l, *d, *other);
    if (funnel_pools(l))
        unpool(*other, *d, f->B, l->Lq, l->Lk, f->c.D);
    else
        add(*other, *d, n);
    float *const swap = *d;
    *d = *other;
    *other = swap;
}

const float *funnel_backward(struct funnel *f, const struct engine *g, const float *d_y)
{
    const size_t n = (size_t)f->B * (size_t)f->T * (size_t)f->c.D;
    float *d = f->d[0], *other = f->d[1];
    int i = f->n - 1;

    memcpy(d, d_y, n * sizeof(float));
    for (; i >= funnel_encoder(f); i--)
        step_back(f, g, i, &d, &other);
    memcpy(f->d_first, d, n * sizeof(float));
    top_grad(f, other, f->d_first);
    float *swap = d;
    d = other;
    other = swap;
    for (; i >= 0; i--) {
        if (i == funnel_first(f))
            add(d, f->d_first, n);
        step_back(f, g, i, &d, &other);
    }
    return d;
}
