/* SPDX-License-Identifier: MIT
 *
 * The judge of all others. Reads like the equations: double accumulators, no blocking, no tricks.
 * Threads share out whole rows, or (sequence, head) pairs, so results do not depend on them. */
#include "ref.h"

#include <math.h>
#include <omp.h>

/* ---- dense products ----------------------------------------------------------------------- */

/* c[i][j] = alpha * sum_p op(a)[i][p] op(b)[p][j] + beta * c[i][j] */
static void gemm_ref(const struct gemm *g)
{
    const ptrdiff_t a_row = g->ta ? 1 : g->lda, a_col = g->ta ? g->lda : 1;
    const ptrdiff_t b_row = g->tb ? 1 : g->ldb, b_col = g->tb ? g->ldb : 1;

#pragma omp parallel for num_threads(g->threads) collapse(2)
    for (int i = 0; i < g->m; i++)
        for (int j = 0; j < g->n; j++) {
            const float *a = g->a + i * a_row, *b = g->b + j * b_col;
            float *c = g->c + i * g->ldc + j;
            double sum = 0;
            for (int p = 0; p < g->k; p++)
                sum += (double)a[p * a_col] * (double)b[p * b_row];
            sum *= (double)g->alpha;
            *c = (float)(g->beta == 0 ? sum : sum + (double)g->beta * (double)*c);
        }
}

/* ---- row operations ----------------------------------------------------------------------- */

/* An empty row, or one whose scores are all -inf, has no distribution: zeros, lse = -inf. */
static void softmax_row(const struct softmax *s, int i)
{
    float *row = s->s + i * s->ld;
    const int lo = clamp_int(s->lo + i * s->lo_slope, 0, s->cols);
    const int hi = clamp_int(s->hi + i * s->hi_slope, lo, s->cols);
    double max = -INFINITY, sum = 0;

    for (int j = lo; j < hi; j++) {
        const int r = s->n_rel ? clamp_int(j + s->shift - i, 0, s->n_rel - 1) : 0;
        double x = (double)row[j];
        if (s->rel)
            x += (double)s->rel[i * s->rel_ld + r];
        if (s->bias)
            x += (double)s->bias[r];
        row[j] = (float)x;
        if (x > max || isnan(x))
            max = x;
    }
    if (max > -INFINITY || isnan(max))
        for (int j = lo; j < hi; j++)
            sum += exp((double)row[j] - max);
    for (int j = 0; j < s->cols; j++)
        row[j] = j >= lo && j < hi && sum != 0 ? (float)(exp((double)row[j] - max) / sum) : 0;
    if (s->lse)
        s->lse[i] = (float)(max + log(sum));
}

static void softmax_ref(const struct softmax *s)
{
#pragma omp parallel for num_threads(s->threads)
    for (int i = 0; i < s->rows; i++)
        softmax_row(s, i);
}

static void norm_row(const struct norm *o, int i)
{
    const float *x = o->x + (ptrdiff_t)i * o->n;
    const float *add = o->add ? o->add + (ptrdiff_t)i * o->n : NULL;
    float *y = o->y + (ptrdiff_t)i * o->n;
    double mean = 0, var = 0;

    for (int e = 0; e < o->n; e++)
        mean += (double)x[e] + (add ? (double)add[e] : 0);
    mean /= o->n;
    for (int e = 0; e < o->n; e++) {
        const double d = (double)x[e] + (add ? (double)add[e] : 0) - mean;
        var += d * d;
    }
    var /= o->n;
    for (int e = 0; e < o->n; e++) {
        const double d = (double)x[e] + (add ? (double)add[e] : 0) - mean;
        y[e] = (float)(d / sqrt(var + (double)o->eps) * (double)o->weight[e] + (double)o->bias[e]);
    }
}

static void norm_ref(const struct norm *o)
{
#pragma omp parallel for num_threads(o->threads)
    for (int i = 0; i < o->rows; i++)
        norm_row(o, i);
}

static void act_ref(const struct act *o)
{
#pragma omp parallel for num_threads(o->threads)
    for (int i = 0; i < o->rows; i++)
        for (int e = 0; e < o->n; e++) {
            const ptrdiff_t at = (ptrdiff_t)i * o->n + e;
            double x = (double)o->x[at] + (o->bias ? (double)o->bias[e] : 0);
            if (o->kind == ACT_RELU && x < 0)
                x = 0;
            o->y[at] = (float)(x + (o->add ? (double)o->add[at] : 0));
        }
}

static double sigma(double x) { return 1 / (1 + exp(-x)); }

static double gate_element(const struct gate_op *o, int i, int e)
{
    const ptrdiff_t at = (ptrdiff_t)i * o->n + e, pre = i * o->ld + e;
    const double x = (double)o->x[at], a = (double)o->a[pre];
    const double b = o->b ? (double)o->b[e] : 0;
    double t;

    switch (o->kind) {
    case GATE_INPUT:
        return sigma(a) * x + (double)o->y[at];
    case GATE_OUTPUT:
        return x + sigma(a - b) * (double)o->y[at];
    case GATE_HIGHWAY:
        t = sigma(a + b);
        return t * x + (1 - t) * (double)o->y[at];
    case GATE_SIGTANH:
        return x + sigma(a - b) * tanh((double)o->c[pre]);
    case GATE_RESET:
        return sigma(a) * x;
    case GATE_UPDATE:
        t = sigma(a - b);
        return (1 - t) * x + t * tanh((double)o->c[pre]);
    }
    CHECK(!"a gate kind");
}

static void gate_ref(const struct gate_op *o)
{
#pragma omp parallel for num_threads(o->threads)
    for (int i = 0; i < o->rows; i++)
        for (int e = 0; e < o->n; e++)
            o->out[(ptrdiff_t)i * o->n + e] = (float)gate_element(o, i, e);
}

static void nll_ref(const struct nll_op *o)
{
#pragma omp parallel for num_threads(o->threads)
    for (int i = 0; i < o->rows; i++) {
        const float *x = o->logits + (ptrdiff_t)i * o->n;
        double max = -INFINITY, sum = 0;
        for (int e = 0; e < o->n; e++)
            max = (double)x[e] > max || isnan(x[e]) ? (double)x[e] : max;
        for (int e = 0; e < o->n; e++)
            sum += exp((double)x[e] - max);
        o->nll[i] = (float)(max + log(sum) - (double)x[o->target[i]]);
    }
}

/* ---- attention ---------------------------------------------------------------------------- */

void ref_probabilities(const struct attn *a, int b, int h, int i, struct ref_row *row)
{
    const int kv = h / (a->H / a->Hkv);
    const float *q = a->q + b * a->q_at.batch + i * a->q_at.row + (ptrdiff_t)h * a->dh;
    const float *u = a->u ? a->u + (ptrdiff_t)h * a->dh : NULL;
    const float *w = a->w ? a->w + (ptrdiff_t)h * a->dh : NULL;
    double max = -INFINITY, sum = 0, *p = row->p;

    row->lo = a->window ? max_int(0, a->M + i - a->window + 1) : 0;
    row->hi = a->causal ? a->M + i + 1 : a->M + a->L;
    for (int j = row->lo; j < row->hi; j++) {
        const float *k = a->k + b * a->k_at.batch + j * a->k_at.row + (ptrdiff_t)kv * a->dh;
        const int r = ref_table_row(a, i, j);
        const float *rel = a->rel_k ? a->rel_k + h * a->rel_head + (ptrdiff_t)r * a->dh : NULL;
        double x = 0;
        for (int e = 0; e < a->dh; e++)
            x += ((double)q[e] + (u ? (double)u[e] : 0)) * (double)k[e];
        for (int e = 0; rel && e < a->dh; e++)
            x += ((double)q[e] + (w ? (double)w[e] : 0)) * (double)rel[e];
        p[j] = (double)a->scale * x + (a->bias ? (double)a->bias[h * a->bias_head + r] : 0);
        if (p[j] > max || isnan(p[j]))
            max = p[j];
    }
    for (int j = row->lo; j < row->hi; j++) {
        p[j] = exp(p[j] - max);
        sum += p[j];
    }
    for (int j = row->lo; j < row->hi; j++)
        p[j] /= sum;
    row->lse = max + log(sum);
}

/* One query row of backend.h's equation; s [K] is work space. */
static void attend_row(const struct attn *a, int b, int h, int i, double *s)
{
    const int kv = h / (a->H / a->Hkv);
    float *o = a->o + b * a->o_at.batch + i * a->o_at.row + (ptrdiff_t)h * a->dh;
    struct ref_row row = {.p = s};

    ref_probabilities(a, b, h, i, &row);
    for (int e = 0; e < a->dh; e++) {
        double out = 0;
        for (int j = row.lo; j < row.hi; j++) {
            const float *v = a->v + b * a->v_at.batch + j * a->v_at.row + (ptrdiff_t)kv * a->dh;
            const ptrdiff_t r = ref_table_row(a, i, j);
            double value = (double)v[e];
            if (a->rel_v)
                value += (double)a->rel_v[h * a->rel_head + r * a->dh + e];
            out += row.p[j] * value;
        }
        o[e] = (float)out;
    }
    if (a->lse)
        a->lse[((ptrdiff_t)b * a->H + h) * a->L + i] = (float)row.lse;
}

static bool accepts_all(const struct attn *a, const char **why_not)
{
    (void)a, (void)why_not;
    return true;
}

static struct attn_need need_ref(const struct attn *a, int threads)
{
    const size_t row = round_up(sizeof(double) * (size_t)(a->M + a->L), 64);

    return (struct attn_need){.scores_bytes = (size_t)threads * row};
}

static void forward_ref(const struct engine *g, const struct attn *a, void *scratch)
{
    const size_t row = need_ref(a, 1).scores_bytes;

#pragma omp parallel for num_threads(g->threads) collapse(3)
    for (int b = 0; b < a->B; b++)
        for (int h = 0; h < a->H; h++)
            for (int i = 0; i < a->L; i++)
                attend_row(a, b, h, i,
                           (double *)((char *)scratch + (size_t)omp_get_thread_num() * row));
}

static const struct attn_impl attn_ref = {
    .name = "ref",
    .accepts = accepts_all,
    .need = need_ref,
    .forward = forward_ref,
    .need_backward = ref_need_backward,
    .backward = ref_backward,
};

static const struct attn_impl *const attn_list[] = {&attn_ref, NULL};

const struct backend backend_ref = {
    .name = "ref",
    .about = "plain C, double accumulators: the judge of the others",
    .ops = {.gemm = gemm_ref,
            .softmax = softmax_ref,
            .norm = norm_ref,
            .act = act_ref,
            .gate = gate_ref,
            .nll = nll_ref,
            .softmax_grad = softmax_grad_ref,
            .norm_grad = norm_grad_ref,
            .act_grad = act_grad_ref,
            .gate_grad = gate_grad_ref,
            .nll_grad = nll_grad_ref},
    .attn = attn_list,
};
