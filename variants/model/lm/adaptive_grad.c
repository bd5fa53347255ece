/* SPDX-License-Identifier: MIT
 *
 * Words in clusters, backward. Logits, maps and rows by cluster are those of the forward pass. */
#include "adaptive.h"
#include "variants/parts/linear.h"

/* dW [n,width] += d^T z over `rows` rows, d having ld floats a row. */
static void weight_grad(const struct engine *g, float *grad, int n, int width, const float *d,
                        int ld, const float *z, int rows)
{
    mm(g, TN, n, width, rows, 1, d, ld, z, width, 1, grad, width);
}

/* d_z [rows,width] = beta d_z + d W */
static void input_grad(const struct engine *g, float *d_z, float beta, const float *d, int ld,
                       const float *W, int n, int width, int rows)
{
    mm(g, NN, rows, width, n, 1, d, ld, W, width, beta, d_z, width);
}

/* Through z = x Q: dQ += x^T d_z, d_x = d_z Q^T. */
static void map_grad(const struct adaptive_words *t, const struct engine *g,
                     const struct cluster *k, float *d_x, const float *x, const float *d_z,
                     int rows)
{
    const struct param *const Q = &t->params->v[k->out_proj];
    const int D = t->c->D;

    weight_grad(g, Q->grad, D, k->width, x, D, d_z, rows);
    mm(g, NT, rows, D, k->width, 1, d_z, k->width, Q->data, k->width, 0, d_x, D);
}

void nll_of_rows_grad(const struct engine *g, float *logits, const int32_t *target, int rows, int n,
                      float scale, float z)
{
    g->ops.nll_grad(&(struct nll_grad){.d_logits = logits,
                                       .logits = logits,
                                       .target = target,
                                       .scale = scale,
                                       .z = z,
                                       .rows = rows,
                                       .n = n,
                                       .threads = g->threads});
}

static void bias_grad(const struct engine *g, float *grad, const float *d, int rows, int n)
{
    g->ops.act_grad(&(struct act_grad){
        .kind = ACT_NONE, .d_bias = grad, .d_y = d, .rows = rows, .n = n, .threads = g->threads});
}

static float *grad_of(const struct adaptive_words *t, int param, const struct cluster *k)
{
    return t->params->v[param].grad + (ptrdiff_t)k->row * k->width;
}

/* d [rows,D] of the head; its logits become their gradient. */
static void head_grad(struct adaptive_words *t, const struct engine *g, const float *h, float *d,
                      float scale, float z, int rows)
{
    const struct cluster *const k = &t->at[0];
    const int width = k->width, n = t->n - 1;
    const bool mapped = k->out_proj >= 0;
    float *const d_logits = t->head_logits, *const d_z = mapped ? t->head_z : d;

    nll_of_rows_grad(g, d_logits, t->head_target, rows, t->head, scale, z);
    memset(t->d_bias, 0, sizeof(float) * (size_t)t->head);
    bias_grad(g, t->d_bias, d_logits, rows, t->head);
    for (int v = 0; v < k->n; v++)
        t->params->v[k->bias].grad[v] += t->d_bias[v];
    for (int v = 0; v < n; v++)
        t->params->v[t->cluster_bias].grad[v] += t->d_bias[k->n + v];
    const float *const in = mapped ? t->head_z : h;
    weight_grad(g, grad_of(t, k->out, k), k->n, width, d_logits, t->head, in, rows);
    if (n)
        weight_grad(g, t->params->v[t->cluster].grad, n, width, d_logits + k->n, t->head, in, rows);
    input_grad(g, d_z, 0, d_logits, t->head, adaptive_table(t, k->out, k), k->n, width, rows);
    if (n)
        input_grad(g, d_z, 1, d_logits + k->n, t->head, t->params->v[t->cluster].data, n, width,
                   rows);
    if (mapped)
        map_grad(t, g, k, d, h, d_z, rows);
}

void adaptive_out_grad(struct adaptive_words *t, const struct engine *g, const float *h, float *d,
                       double share, float z, int rows)
{
    const float scale = (float)(share / rows);
    const ptrdiff_t D = t->c->D;
    float *d_logits = t->logits;

    head_grad(t, g, h, d, scale, z, rows);
    for (int i = 1; i < t->n; i++) {
        const struct cluster *const k = &t->at[i];
        const int n = adaptive_rows(t, i), width = k->width;
        const int32_t *const at = t->rows + t->begin[i];
        const bool mapped = k->out_proj >= 0;
        float *const x = t->x + t->begin[i] * D;
        float *const z_i = mapped ? t->z + (ptrdiff_t)t->begin[i] * t->at[0].width : x;
        if (!n)
            continue;
        nll_of_rows_grad(g, d_logits, t->in_cluster + t->begin[i], n, k->n, scale, z);
        bias_grad(g, t->params->v[k->bias].grad + k->row, d_logits, n, k->n);
        weight_grad(g, grad_of(t, k->out, k), k->n, width, d_logits, k->n, z_i, n);
        input_grad(g, z_i, 0, d_logits, k->n, adaptive_table(t, k->out, k), k->n, width, n);
        if (mapped)
            map_grad(t, g, k, x, x, z_i, n);
        for (ptrdiff_t r = 0; r < n; r++)
            for (ptrdiff_t e = 0; e < D; e++)
                d[at[r] * D + e] += x[r * D + e];
        d_logits += (ptrdiff_t)n * k->n;
    }
}

/* Rows of tables in the order of tokens, which does not depend on threads. */
void adaptive_embed_grad(struct adaptive_words *t, const struct engine *g, const int32_t *tokens,
                         const float *d_h, int rows)
{
    adaptive_sort(t, tokens, rows);
    for (int i = 0; i < t->n; i++) {
        const struct cluster *const k = &t->at[i];
        const int n = adaptive_rows(t, i);
        const int32_t *const word = t->in_cluster + t->begin[i];
        const ptrdiff_t width = k->width;
        const float *const E = adaptive_table(t, k->embed, k);
        float *const d_E = grad_of(t, k->embed, k), *d_rows = t->x;
        if (!n)
            continue;
        adaptive_gather(t, g, i, t->x, d_h, t->c->emb_scale);
        if (k->embed_proj >= 0) {
            const struct param *const P = &t->params->v[k->embed_proj];
            for (ptrdiff_t r = 0; r < n; r++)
                memcpy(t->z + r * width, E + word[r] * width, sizeof(float) * (size_t)width);
            linear_backward(g, P, NULL, t->z, t->x, t->z, n, 0);
            d_rows = t->z;
        }
        for (ptrdiff_t r = 0; r < n; r++)
            for (ptrdiff_t e = 0; e < width; e++)
                d_E[word[r] * width + e] += d_rows[r * width + e];
    }
}
