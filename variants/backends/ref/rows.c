/* SPDX-License-Identifier: MIT
 *
 * Reference row operations, forward: backend.h's equations as they stand, in double. Threads take
 * whole rows. */
#include "ref.h"

/* ---- softmax ------------------------------------------------------------------------------ */

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

void softmax_ref(const struct softmax *s)
{
#pragma omp parallel for num_threads(s->threads)
    for (int i = 0; i < s->rows; i++)
        softmax_row(s, i);
}

/* ---- norm --------------------------------------------------------------------------------- */

bool ref_norm_centred(enum norm_kind kind) { return kind == NORM_LAYER || kind == NORM_UNBIASED; }

double ref_norm_root(enum norm_kind kind, double squares, int n, double eps)
{
    const double length = sqrt(squares);

    switch (kind) {
    case NORM_LAYER:
    case NORM_RMS:
        return sqrt(squares / n + eps);
    case NORM_SCALE:
        return length < eps ? eps : length;
    case NORM_UNBIASED:
        return sqrt(squares / (n - 1)) + eps;
    case NORM_ADA:
    case NORM_POWER:
    case NORM_KIND_COUNT:
        break;
    }
    CHECK(!"a kind of norm");
}

static void norm_row(const struct norm *o, int i)
{
    const float *x = o->x + (ptrdiff_t)i * o->n;
    const float *add = o->add ? o->add + (ptrdiff_t)i * o->n : NULL;
    const ptrdiff_t head = norm_weights_at(o->heads, o->n, i);
    float *y = o->y + (ptrdiff_t)i * o->n;
    double mean = 0, squares = 0;

    for (int e = 0; ref_norm_centred(o->kind) && e < o->n; e++)
        mean += (double)x[e] + (add ? (double)add[e] : 0);
    mean /= o->n;
    for (int e = 0; e < o->n; e++) {
        const double d = (double)x[e] + (add ? (double)add[e] : 0) - mean;
        squares += d * d;
    }
    const double root = ref_norm_root(o->kind, squares, o->n, (double)o->eps);
    for (int e = 0; e < o->n; e++) {
        const double d = (double)x[e] + (add ? (double)add[e] : 0) - mean;
        const double weight = o->ada_c != 0
                                  ? (double)o->ada_c * (1 - (double)o->ada_k * d / root)
                                  : (double)o->weight[o->kind == NORM_SCALE ? 0 : head + e];
        y[e] = (float)(d / root * weight + (o->bias ? (double)o->bias[head + e] : 0));
    }
}

void norm_ref(const struct norm *o)
{
#pragma omp parallel for num_threads(o->threads)
    for (int i = 0; i < o->rows; i++)
        norm_row(o, i);
}

/* ---- act, glu, gate ----------------------------------------------------------------------- */

double ref_act(enum act_kind kind, double x, double beta)
{
    switch (kind) {
    case ACT_NONE:
        return x;
    case ACT_RELU:
        return x < 0 ? 0 : x;
    case ACT_SIGMOID:
        return sigma(x);
    case ACT_SWISH:
        return x * sigma(beta * x);
    case ACT_GELU:
        return x * erfc(-x / sqrt(2)) / 2;
    case ACT_GELU_TANH:
        return x * sigma(2 * sqrt(2 / REF_PI) * (x + 0.044715 * x * x * x));
    case ACT_ELU1:
        return x > 0 ? x + 1 : exp(x);
    case ACT_TANH:
        return tanh(beta * x);
    case ACT_RELU_SQUARED:
        return x < 0 ? 0 : x * x;
    case ACT_SOFTPLUS:
        return (x < 0 ? 0 : x) + log1p(exp(-fabs(x)));
    case ACT_LOG_SIGMOID:
        return (x < 0 ? x : 0) - log1p(exp(-fabs(x)));
    case ACT_EXP:
        return exp(x);
    case ACT_HALF_SIGMOID:
        return x < 0 ? sigma(x) : x + 0.5;
    case ACT_KINDS:
        break;
    }
    CHECK(!"a kind of activation");
}

void act_ref(const struct act *o)
{
    const double beta = o->beta ? (double)*o->beta : 1, factor = o->factor ? (double)*o->factor : 1;
    const ptrdiff_t x_row = act_x_row(o->x_row, o->n);

#pragma omp parallel for num_threads(o->threads)
    for (int i = 0; i < o->rows; i++)
        for (int e = 0; e < o->n; e++) {
            const ptrdiff_t at = (ptrdiff_t)i * o->n + e;
            const double x = (double)o->x[i * x_row + e] + (o->bias ? (double)o->bias[e] : 0);
            const double add = o->add ? (double)o->add[at] : 0;
            o->y[at] = (float)(factor * ref_act(o->kind, x, beta) + add);
        }
}

struct ref_glu ref_glu(double a, double b, double limit)
{
    if (limit == 0)
        return (struct ref_glu){a, b, 1, 1};
    return (struct ref_glu){a > limit ? limit : a,
                            (b > limit    ? limit
                             : b < -limit ? -limit
                                          : b) +
                                1,
                            !(a > limit), !(b > limit || b < -limit)};
}

void glu_ref(const struct glu *o)
{
#pragma omp parallel for num_threads(o->threads)
    for (int i = 0; i < o->rows; i++)
        for (int e = 0; e < o->n; e++) {
            const ptrdiff_t at = i * o->ld + e;
            const double a = (double)o->a[at] + (o->a_bias ? (double)o->a_bias[e] : 0);
            const double b = (double)o->b[at] + (o->b_bias ? (double)o->b_bias[e] : 0);
            const struct ref_glu x = ref_glu(a, b, (double)o->limit);
            o->y[(ptrdiff_t)i * o->n + e] =
                (float)(ref_act(o->kind, x.a, (double)glu_beta(o->beta)) * x.b);
        }
}

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

void gate_ref(const struct gate_op *o)
{
#pragma omp parallel for num_threads(o->threads)
    for (int i = 0; i < o->rows; i++)
        for (int e = 0; e < o->n; e++)
            o->out[(ptrdiff_t)i * o->n + e] = (float)gate_element(o, i, e);
}

/* ---- nll ---------------------------------------------------------------------------------- */

void nll_ref(const struct nll_op *o)
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
