/* SPDX-License-Identifier: MIT
 *
 * Reference row operations, backward: the equations as they stand, in double. Data gradients are
 * divided among threads by rows, weight gradients by columns, so results do not depend on their
 * number. */
#include "ref.h"

/* ---- softmax ------------------------------------------------------------------------------ */

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

/* ---- norm --------------------------------------------------------------------------------- */

/* One row's normalisation: xhat = (x - mean) / root. d root / d x = pull xhat is the coefficient of
 * the term xhat (t . xhat) in the gradient. */
struct normal {
    double mean, root, pull;
};

static struct normal normal_of(const struct norm_grad *o, int i)
{
    const float *x = o->x + (ptrdiff_t)i * o->n;
    const int n = o->n;
    const double eps = (double)o->eps;
    struct normal s = {0};
    double squares = 0;

    for (int e = 0; ref_norm_centred(o->kind) && e < n; e++)
        s.mean += (double)x[e];
    s.mean /= n;
    for (int e = 0; e < n; e++)
        squares += ((double)x[e] - s.mean) * ((double)x[e] - s.mean);
    s.root = ref_norm_root(o->kind, squares, n, eps);
    switch (o->kind) {
    case NORM_LAYER:
    case NORM_RMS:
        s.pull = 1.0 / n;
        break;
    case NORM_SCALE:
        s.pull = sqrt(squares) > eps ? 1 : 0;
        break;
    case NORM_UNBIASED: /* only the deviation depends on the row, eps is added to it */
        s.pull = squares > 0 ? s.root / (sqrt(squares / (n - 1)) * (n - 1)) : 0;
        break;
    case NORM_ADA:
    case NORM_POWER:
    case NORM_KIND_COUNT:
        CHECK(!"a kind of norm");
    }
    return s;
}

static double xhat_of(const struct norm_grad *o, const struct normal *s, int i, int e)
{
    return ((double)o->x[(ptrdiff_t)i * o->n + e] - s->mean) / s->root;
}

/* t = dy weight */
static double weighted(const struct norm_grad *o, const struct normal *s, int i, int e)
{
    const double d_y = (double)o->d_y[(ptrdiff_t)i * o->n + e];

    if (o->ada_c != 0)
        return d_y * (double)o->ada_c * (1 - (double)o->ada_k * xhat_of(o, s, i, e));
    return d_y *
           (double)o->weight[o->kind == NORM_SCALE ? 0 : norm_weights_at(o->heads, o->n, i) + e];
}

/* dx = (t - mean(t) - pull xhat (t . xhat)) / root, t = dy weight; mean(t) where x is centred */
static void norm_grad_row(const struct norm_grad *o, int i)
{
    float *d_x = o->d_x + (ptrdiff_t)i * o->n;
    const struct normal s = normal_of(o, i);
    double mean_t = 0, tx = 0;

    for (int e = 0; e < o->n; e++) {
        const double t = weighted(o, &s, i, e);
        mean_t += ref_norm_centred(o->kind) ? t / o->n : 0;
        tx += t * xhat_of(o, &s, i, e);
    }
    for (int e = 0; e < o->n; e++) {
        const double t = weighted(o, &s, i, e), xhat = xhat_of(o, &s, i, e);
        d_x[e] = (float)((t - mean_t - s.pull * xhat * tx) / s.root);
    }
}

/* The column sums of d_y xhat and of d_y over the rows of one head, for columns [e0, e1) together.
 * One float is too coarse for the mean, so `stats` holds it as a sum of two. */
static void norm_weight_grad(const struct norm_grad *o, int head, int e0, int e1)
{
    const ptrdiff_t to = (ptrdiff_t)head * o->n + e0;
    double weight = 0, bias = 0;

    for (int i = head; i < o->rows; i += max_int(1, o->heads))
        for (int e = e0; e < e1; e++) {
            const float *stats = o->stats + (ptrdiff_t)NORM_STATS * i;
            const ptrdiff_t at = (ptrdiff_t)i * o->n + e;
            const double mean = (double)stats[0] + (double)stats[1];
            weight += (double)o->d_y[at] * ((double)o->x[at] - mean) * (double)stats[2];
            bias += (double)o->d_y[at];
        }
    if (o->d_weight)
        o->d_weight[to] = (float)((double)o->d_weight[to] + weight);
    if (o->d_bias)
        o->d_bias[to] = (float)((double)o->d_bias[to] + bias);
}

/* Stats of all rows come first, because d_x may alias x or d_y. */
void norm_grad_ref(const struct norm_grad *o)
{
    const int step = o->kind == NORM_SCALE ? o->n : 1; /* columns that share a weight */

#pragma omp parallel for num_threads(o->threads)
    for (int i = 0; i < o->rows; i++) {
        float *stats = o->stats + (ptrdiff_t)NORM_STATS * i;
        const struct normal s = normal_of(o, i);
        stats[0] = (float)s.mean;
        stats[1] = (float)(s.mean - (double)stats[0]);
        stats[2] = (float)(1 / s.root);
    }
#pragma omp parallel for num_threads(o->threads)
    for (int e = 0; e < o->n; e += step)
        for (int head = 0; head < max_int(1, o->heads); head++)
            norm_weight_grad(o, head, e, e + step);
#pragma omp parallel for num_threads(o->threads)
    for (int i = 0; i < (o->d_x ? o->rows : 0); i++)
        norm_grad_row(o, i);
}

/* ---- act, glu ----------------------------------------------------------------------------- */

/* f'(x). 1 - s is computed as the logistic of -x, which does not cancel. */
static double slope_of(enum act_kind kind, double x, double beta)
{
    const double c = 2 * sqrt(2 / REF_PI);
    double s, z;

    switch (kind) {
    case ACT_NONE:
        return 1;
    case ACT_RELU:
        return x > 0;
    case ACT_SIGMOID:
        s = sigma(x);
        return s * sigma(-x);
    case ACT_SWISH:
        s = sigma(beta * x);
        return s + beta * x * s * sigma(-beta * x);
    case ACT_GELU: /* Phi + x phi */
        return erfc(-x / sqrt(2)) / 2 + x * exp(-x * x / 2) / sqrt(2 * REF_PI);
    case ACT_GELU_TANH:
        z = c * (x + 0.044715 * x * x * x);
        s = sigma(z);
        return s + x * s * sigma(-z) * c * (1 + 3 * 0.044715 * x * x);
    case ACT_ELU1:
        return x > 0 ? 1 : exp(x);
    case ACT_TANH: /* 1 - tanh^2 = 4 s(2 z) s(-2 z), which does not cancel */
        z = 2 * beta * x;
        return 4 * beta * sigma(z) * sigma(-z);
    case ACT_RELU_SQUARED:
        return x < 0 ? 0 : 2 * x;
    case ACT_SOFTPLUS:
        return sigma(x);
    case ACT_LOG_SIGMOID:
        return sigma(-x);
    case ACT_EXP:
        return exp(x);
    case ACT_HALF_SIGMOID:
        return x < 0 ? sigma(x) * sigma(-x) : 1;
    case ACT_KINDS:
        break;
    }
    CHECK(!"a kind of activation");
}

/* An inactive unit passes nothing back, even if d is infinite or NaN. */
static double times_slope(double d, double slope) { return slope == 0 ? 0 : d * slope; }

/* d f / d beta = x^2 s (1 - s) */
static void beta_grad(const struct act_grad *o)
{
    double sum = 0;

    for (ptrdiff_t at = 0; at < (ptrdiff_t)o->rows * o->n; at++) {
        const ptrdiff_t i = at / o->n, e = at % o->n;
        const double x =
            (double)o->x[i * act_x_row(o->x_row, o->n) + e] + (o->bias ? (double)o->bias[e] : 0);
        const double z = (o->beta ? (double)*o->beta : 1) * x;
        sum += (double)o->d_y[at] * x * x * sigma(z) * sigma(-z);
    }
    sum *= o->factor ? (double)*o->factor : 1;
    *o->d_beta = (float)((double)*o->d_beta + sum);
}

void act_grad_ref(const struct act_grad *o)
{
    const double beta = o->beta ? (double)*o->beta : 1, factor = o->factor ? (double)*o->factor : 1;
    const ptrdiff_t x_row = act_x_row(o->x_row, o->n);

    if (o->d_beta)
        beta_grad(o);
#pragma omp parallel for num_threads(o->threads)
    for (int e = 0; e < o->n; e++) {
        double bias = 0;
        for (int i = 0; i < o->rows; i++) {
            const ptrdiff_t at = (ptrdiff_t)i * o->n + e;
            const double x = o->kind == ACT_NONE
                                 ? 0
                                 : (double)o->x[i * x_row + e] + (o->bias ? (double)o->bias[e] : 0);
            const double d = times_slope((double)o->d_y[at], factor * slope_of(o->kind, x, beta));
            bias += d;
            if (o->d_x)
                o->d_x[at] = (float)d;
        }
        if (o->d_bias)
            o->d_bias[e] = (float)((double)o->d_bias[e] + bias);
    }
}

void glu_grad_ref(const struct glu_grad *o)
{
#pragma omp parallel for num_threads(o->threads)
    for (int e = 0; e < o->n; e++) {
        double a_bias = 0, b_bias = 0;
        for (int i = 0; i < o->rows; i++) {
            const ptrdiff_t at = i * o->ld + e;
            const double d_y = (double)o->d_y[(ptrdiff_t)i * o->n + e];
            const double a = (double)o->a[at] + (o->a_bias ? (double)o->a_bias[e] : 0);
            const double b = (double)o->b[at] + (o->b_bias ? (double)o->b_bias[e] : 0);
            const double beta = (double)glu_beta(o->beta);
            const struct ref_glu x = ref_glu(a, b, (double)o->limit);
            const double d_a = times_slope(d_y * x.b, x.a_slope * slope_of(o->kind, x.a, beta));
            const double d_b = times_slope(d_y * ref_act(o->kind, x.a, beta), x.b_slope);
            a_bias += d_a;
            b_bias += d_b;
            o->d_a[at] = (float)d_a;
            o->d_b[at] = (float)d_b;
        }
        if (o->d_a_bias)
            o->d_a_bias[e] = (float)((double)o->d_a_bias[e] + a_bias);
        if (o->d_b_bias)
            o->d_b_bias[e] = (float)((double)o->d_b_bias[e] + b_bias);
    }
}

/* ---- gate --------------------------------------------------------------------------------- */

/* Gradients of one element of a gate with respect to its operands; b is the part of d_b. */
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

/* ---- nll ---------------------------------------------------------------------------------- */

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
        const double weight = 1 + 2 * (double)o->z * (max + log(sum));
        for (int e = 0; e < o->n; e++) {
            const double p = weight * exp((double)x[e] - max) / sum;
            d[e] = (float)((double)o->scale * (p - (e == o->target[i])));
        }
    }
}
