/* SPDX-License-Identifier: MIT
 *
 * The judge's backward half: the equations as they stand, double accumulators. Data gradients are
 * shared out by rows, weight gradients by columns, attention by (sequence, key head); whatever is
 * summed over those is summed afterwards in one order, so results do not depend on threads. */
#include "ref.h"

#include <math.h>
#include <omp.h>
#include <string.h>

/* ---- row operations ----------------------------------------------------------------------- */

void softmax_grad_ref(const struct softmax_grad *o)
{
#pragma omp parallel for num_threads(o->threads)
    for (int i = 0; i < o->rows; i++) {
        const float *p = o->p + i * o->ld, *rel = o->rel ? o->rel + i * o->rel_ld : NULL;
        float *d = o->d + i * o->ld;
        double delta = 0;

        for (int j = 0; j < o->cols; j++) {
            if (rel)
                d[j] += rel[clamp_int(j + o->shift - i, 0, o->n_rel - 1)];
            delta += (double)p[j] * (double)d[j];
        }
        for (int j = 0; j < o->cols; j++)
            d[j] = (float)((double)p[j] * ((double)d[j] - delta));
    }
}

/* Mean and 1/sqrt(var + eps) of one row. */
static void moments(const float *x, int n, double eps, double *mean, double *r)
{
    double sum = 0, var = 0;

    for (int e = 0; e < n; e++)
        sum += (double)x[e];
    *mean = sum / n;
    for (int e = 0; e < n; e++)
        var += ((double)x[e] - *mean) * ((double)x[e] - *mean);
    *r = 1 / sqrt(var / n + eps);
}

static void norm_grad_row(const struct norm_grad *o, int i)
{
    const float *x = o->x + (ptrdiff_t)i * o->n, *d_y = o->d_y + (ptrdiff_t)i * o->n;
    float *d_x = o->d_x + (ptrdiff_t)i * o->n;
    double mean, r, mean_t = 0, mean_tx = 0;

    moments(x, o->n, (double)o->eps, &mean, &r);
    for (int e = 0; e < o->n; e++) {
        const double t = (double)d_y[e] * (double)o->weight[e];
        mean_t += t / o->n;
        mean_tx += t * ((double)x[e] - mean) * r / o->n;
    }
    for (int e = 0; e < o->n; e++) {
        const double t = (double)d_y[e] * (double)o->weight[e], xhat = ((double)x[e] - mean) * r;
        d_x[e] = (float)(r * (t - mean_t - xhat * mean_tx));
    }
}

/* The stats of all rows first, because d_x may lie where x or d_y lies. Floats lose too much of
 * a mean, so it is kept as the sum of two. */
void norm_grad_ref(const struct norm_grad *o)
{
#pragma omp parallel for num_threads(o->threads)
    for (int i = 0; i < o->rows; i++) {
        float *stats = o->stats + (ptrdiff_t)NORM_STATS * i;
        double mean, r;
        moments(o->x + (ptrdiff_t)i * o->n, o->n, (double)o->eps, &mean, &r);
        stats[0] = (float)mean;
        stats[1] = (float)(mean - (double)stats[0]);
        stats[2] = (float)r;
    }
#pragma omp parallel for num_threads(o->threads)
    for (int e = 0; e < o->n; e++) {
        double weight = 0, bias = 0;
        for (int i = 0; i < o->rows; i++) {
            const float *stats = o->stats + (ptrdiff_t)NORM_STATS * i;
            const ptrdiff_t at = (ptrdiff_t)i * o->n + e;
            const double mean = (double)stats[0] + (double)stats[1];
            weight += (double)o->d_y[at] * ((double)o->x[at] - mean) * (double)stats[2];
            bias += (double)o->d_y[at];
        }
        if (o->d_weight)
            o->d_weight[e] = (float)((double)o->d_weight[e] + weight);
        if (o->d_bias)
            o->d_bias[e] = (float)((double)o->d_bias[e] + bias);
    }
#pragma omp parallel for num_threads(o->threads)
    for (int i = 0; i < (o->d_x ? o->rows : 0); i++)
        norm_grad_row(o, i);
}

void act_grad_ref(const struct act_grad *o)
{
#pragma omp parallel for num_threads(o->threads)
    for (int e = 0; e < o->n; e++) {
        double bias = 0;
        for (int i = 0; i < o->rows; i++) {
            const ptrdiff_t at = (ptrdiff_t)i * o->n + e;
            const float d = o->kind == ACT_NONE || o->y[at] > 0 ? o->d_y[at] : 0;
            bias += (double)d;
            if (o->d_x)
                o->d_x[at] = d;
        }
        if (o->d_bias)
            o->d_bias[e] = (float)((double)o->d_bias[e] + bias);
    }
}

/* Gradients of one element of a gate with respect to its operands; b is what d_b receives. */
struct gate_element {
    double x, y, a, c, b;
};

static struct gate_element gate_element(const struct gate_grad *o, int i, int e)
{
    const ptrdiff_t at = (ptrdiff_t)i * o->n + e, pre = i * o->ld + e;
    const double g = (double)o->d_out[at], a = (double)o->a[pre], x = o->x ? (double)o->x[at] : 0;
    const double y = o->y ? (double)o->y[at] : 0, b = o->b ? (double)o->b[e] : 0;
    const double c = o->c ? tanh((double)o->c[pre]) : 0;
    const double t = 1 / (1 + exp(-(o->kind == GATE_HIGHWAY ? a + b : a - b)));
    const double slope = g * t * (1 - t); /* dg sigma'(a) */

    switch (o->kind) {
    case GATE_INPUT:
        return (struct gate_element){.x = g * t, .y = g, .a = slope * x};
    case GATE_OUTPUT:
        return (struct gate_element){.x = g, .y = g * t, .a = slope * y, .b = -slope * y};
    case GATE_HIGHWAY:
        return (struct gate_element){
            .x = g * t, .y = g * (1 - t), .a = slope * (x - y), .b = slope * (x - y)};
    case GATE_SIGTANH:
        return (struct gate_element){
            .x = g, .a = slope * c, .c = g * t * (1 - c * c), .b = -slope * c};
    case GATE_RESET:
        return (struct gate_element){.x = g * t, .a = slope * x};
    case GATE_UPDATE:
        return (struct gate_element){.x = g * (1 - t),
                                     .a = slope * (c - x),
                                     .c = g * t * (1 - c * c),
                                     .b = -slope * (c - x)};
    }
    CHECK(!"a gate kind");
}

void gate_grad_ref(const struct gate_grad *o)
{
#pragma omp parallel for num_threads(o->threads)
    for (int e = 0; e < o->n; e++) {
        double bias = 0;
        for (int i = 0; i < o->rows; i++) {
            const ptrdiff_t at = (ptrdiff_t)i * o->n + e, pre = i * o->ld + e;
            const struct gate_element d = gate_element(o, i, e);
            bias += d.b;
            if (o->d_x)
                o->d_x[at] = (float)d.x;
            if (o->d_y)
                o->d_y[at] = (float)d.y;
            if (o->d_a)
                o->d_a[pre] = (float)d.a;
            if (o->d_c)
                o->d_c[pre] = (float)d.c;
        }
        if (o->d_b)
            o->d_b[e] = (float)((double)o->d_b[e] + bias);
    }
}

void nll_grad_ref(const struct nll_grad *o)
{
#pragma omp parallel for num_threads(o->threads)
    for (int i = 0; i < o->rows; i++) {
        const float *x = o->logits + (ptrdiff_t)i * o->n;
        float *d = o->d_logits + (ptrdiff_t)i * o->n;
        double max = -INFINITY, sum = 0;

        for (int e = 0; e < o->n; e++)
            max = (double)x[e] > max || isnan(x[e]) ? (double)x[e] : max;
        for (int e = 0; e < o->n; e++)
            sum += exp((double)x[e] - max);
        for (int e = 0; e < o->n; e++) {
            const double p = exp((double)x[e] - max) / sum;
            d[e] = (float)((double)o->scale * (p - (e == o->target[i])));
        }
    }
}

/* ---- attention ---------------------------------------------------------------------------- */

/* Gradients of the terms from one (sequence, head); laid out one behind the other. */
struct terms {
    double *rel_k, *rel_v, *bias, *u, *w; /* [R+Rf,dh] [R+Rf,dh] [R+Rf] [dh] [dh] */
};

static size_t table_rows(const struct attn *a) { return (size_t)a->R + (size_t)a->Rf; }

static size_t terms_doubles(const struct attn *a)
{
    return table_rows(a) * (size_t)(2 * a->dh + 1) + 2 * (size_t)a->dh;
}

static struct terms terms_at(const struct attn *a, double *at)
{
    const size_t rows = table_rows(a), dh = (size_t)a->dh;

    return (struct terms){at, at + rows * dh, at + 2 * rows * dh, at + rows * (2 * dh + 1),
                          at + rows * (2 * dh + 1) + dh};
}

/* One thread's space: a row's probabilities and score gradients, and one head's keys and values. */
struct work {
    double *p, *g, *d_k, *d_v; /* [K] [K] [K,dh] [K,dh] */
};

static size_t work_doubles(const struct attn *a)
{
    return 2 * (size_t)(a->M + a->L) * (size_t)(1 + a->dh);
}

struct attn_need ref_need_backward(const struct attn *a, int threads)
{
    const size_t heads = (size_t)a->B * (size_t)a->H;

    return (struct attn_need){.scratch_bytes = sizeof(double) * ((size_t)threads * work_doubles(a) +
                                                                 heads * terms_doubles(a))};
}

/* g_j = p_j (dA_j - delta), the gradient of s_ij; dA_j = dO_i . (v_j + rel_v[dist]). */
static void score_grad(const struct attn *a, const struct ref_row *row, const float *d_o, int b,
                       int h, int i, double *g)
{
    const int kv = h / (a->H / a->Hkv);
    double delta = 0;

    for (int j = row->lo; j < row->hi; j++) {
        const float *v = a->v + b * a->v_at.batch + j * a->v_at.row + (ptrdiff_t)kv * a->dh;
        const ptrdiff_t r = (ptrdiff_t)ref_table_row(a, i, j) * a->dh;
        g[j] = 0;
        for (int e = 0; e < a->dh; e++) {
            const double rel = a->rel_v ? (double)a->rel_v[h * a->rel_head + r + e] : 0;
            g[j] += (double)d_o[e] * ((double)v[e] + rel);
        }
        delta += row->p[j] * g[j];
    }
    for (int j = row->lo; j < row->hi; j++)
        g[j] = row->p[j] * (g[j] - delta);
}

/* Element e of everything that query i touches. */
static void element_grad(const struct attn *a, const struct attn_grad *d, const struct ref_row *row,
                         const struct work *w, const struct terms *t, int b, int h, int i, int e)
{
    const int kv = h / (a->H / a->Hkv);
    const ptrdiff_t he = (ptrdiff_t)h * a->dh + e, o_at = b * a->o_at.batch + i * a->o_at.row + he;
    const ptrdiff_t q_at = b * a->q_at.batch + i * a->q_at.row + he;
    const double q = (double)a->q[q_at], d_o = (double)d->d_o[o_at];
    const double qu = q + (a->u ? (double)a->u[he] : 0), qw = q + (a->w ? (double)a->w[he] : 0);
    double content = 0, position = 0;

    for (int j = row->lo; j < row->hi; j++) {
        const ptrdiff_t kv_e = (ptrdiff_t)kv * a->dh + e;
        const ptrdiff_t r = (ptrdiff_t)ref_table_row(a, i, j) * a->dh + e;
        const double x = (double)a->scale * w->g[j];

        w->d_v[(ptrdiff_t)j * a->dh + e] += row->p[j] * d_o;
        w->d_k[(ptrdiff_t)j * a->dh + e] += x * qu;
        content += x * (double)a->k[b * a->k_at.batch + j * a->k_at.row + kv_e];
        if (a->rel_v)
            t->rel_v[r] += row->p[j] * d_o;
        if (a->rel_k) {
            t->rel_k[r] += x * qw;
            position += x * (double)a->rel_k[h * a->rel_head + r];
        }
    }
    d->d_q[q_at] = (float)(content + position);
    t->u[e] += content;
    t->w[e] += position;
}

static void head_grad(const struct attn *a, const struct attn_grad *d, int b, int h,
                      const struct work *w, const struct terms *t)
{
    for (int i = 0; i < a->L; i++) {
        const float *d_o = d->d_o + b * a->o_at.batch + i * a->o_at.row + (ptrdiff_t)h * a->dh;
        struct ref_row row = {.p = w->p};

        ref_probabilities(a, b, h, i, &row);
        score_grad(a, &row, d_o, b, h, i, w->g);
        for (int e = 0; e < a->dh; e++)
            element_grad(a, d, &row, w, t, b, h, i, e);
        for (int j = row.lo; a->bias && j < row.hi; j++)
            t->bias[ref_table_row(a, i, j)] += w->g[j];
    }
}

/* One key head of one sequence, and the query heads that share it. */
static void item_grad(const struct attn *a, const struct attn_grad *d, int b, int kv,
                      const struct work *w, double *all_terms)
{
    const int group = a->H / a->Hkv, K = a->M + a->L;

    memset(w->d_k, 0, 2 * sizeof(double) * (size_t)K * (size_t)a->dh);
    for (int h = kv * group; h < (kv + 1) * group; h++) {
        const struct terms t = terms_at(a, all_terms + (size_t)(b * a->H + h) * terms_doubles(a));
        memset(t.rel_k, 0, sizeof(double) * terms_doubles(a));
        head_grad(a, d, b, h, w, &t);
    }
    for (int j = 0; j < K; j++)
        for (int e = 0; e < a->dh; e++) {
            const ptrdiff_t at = (ptrdiff_t)kv * a->dh + e, from = (ptrdiff_t)j * a->dh + e;
            d->d_k[b * a->k_at.batch + j * a->k_at.row + at] = (float)w->d_k[from];
            d->d_v[b * a->v_at.batch + j * a->v_at.row + at] = (float)w->d_v[from];
        }
}

/* dst [H or 1, n] (heads `head` floats apart) += the terms at `offset` of every sequence and head.
 */
static void sum_terms(const struct attn *a, float *dst, ptrdiff_t head, const double *all,
                      size_t offset, size_t n)
{
    const size_t each = terms_doubles(a);
    const int owners = head ? a->H : 1, sharing = head ? 1 : a->H;

    for (int h = 0; dst && h < owners; h++)
        for (size_t e = 0; e < n; e++) {
            double sum = 0;
            for (int b = 0; b < a->B; b++)
                for (int s = 0; s < sharing; s++)
                    sum += all[(size_t)(b * a->H + h + s) * each + offset + e];
            float *at = dst + h * head + (ptrdiff_t)e;
            *at = (float)((double)*at + sum);
        }
}

void ref_backward(const struct engine *g, const struct attn *a, const struct attn_grad *d,
                  void *scratch)
{
    const size_t K = (size_t)a->M + (size_t)a->L, rows = table_rows(a), dh = (size_t)a->dh;
    double *works = scratch, *all = works + (size_t)g->threads * work_doubles(a);

#pragma omp parallel for num_threads(g->threads) schedule(dynamic, 1)
    for (int item = 0; item < a->B * a->Hkv; item++) {
        double *at = works + (size_t)omp_get_thread_num() * work_doubles(a);
        const struct work w = {at, at + K, at + 2 * K, at + 2 * K + K * dh};
        item_grad(a, d, item / a->Hkv, item % a->Hkv, &w, all);
    }
    const struct terms t = terms_at(a, all);
    sum_terms(a, d->d_rel_k, a->rel_head, all, (size_t)(t.rel_k - all), rows * dh);
    sum_terms(a, d->d_rel_v, a->rel_head, all, (size_t)(t.rel_v - all), rows * dh);
    sum_terms(a, d->d_bias, a->bias_head, all, (size_t)(t.bias - all), rows);
    sum_terms(a, d->d_u, a->dh, all, (size_t)(t.u - all), dh);
    sum_terms(a, d->d_w, a->dh, all, (size_t)(t.w - all), dh);
}
