/* SPDX-License-Identifier: MIT
 *
 * Operations in double, with the derivations of their bounds. */
#include "op_bounds.h"

static double number_of_b(const struct gemm *g, int p, int j)
{
    if (g->elem == ELEM_F32) {
        const float b = g->b[g->tb ? j * g->ldb + p : p * g->ldb + j];
        return (double)(g->rounds ? bf16_float(bf16_of(b)) : b);
    }
    const char *const row = (const char *)g->b_narrow + (size_t)j * elem_row_bytes(g->elem, g->k);
    float x;
    elem_widen(g->elem, &x, row, p, 1);
    return (double)x;
}

/* Sums of blocks are exact; the product of the scales, and each step of the sum over blocks round
 * once, and the vectors' parts are added up in a few more steps. A shift is a step more: its
 * product with a row's scaled sum, which is rounded once. */
static double quantised_bound(const struct gemm *g, double old, int i, int j)
{
    enum { PARTS = 8 }; /* log2 of the lanes and chains, at most */
    const char *const row = (const char *)g->b_narrow + (size_t)j * elem_row_bytes(g->elem, g->k);
    const int blocks = (g->k + Q8_BLOCK - 1) / Q8_BLOCK;
    double sum = 0;

    for (int at = 0; at < blocks; at++) {
        struct q8_block a, b;
        const int p = at * Q8_BLOCK;
        long products = 0, all = 0;
        q8_round_row(&a, g->a + i * g->lda + p, g->k - p < Q8_BLOCK ? g->k - p : Q8_BLOCK);
        elem_block(g->elem, &b, row, at);
        for (int e = 0; e < Q8_BLOCK; e++) {
            products += labs((long)a.q[e] * b.q[e]);
            all += labs((long)a.q[e]);
        }
        sum += fabs((double)a.scale) * (fabs((double)b.scale) * (double)products +
                                        fabs((double)elem_shift(g->elem, row, at)) * (double)all);
    }
    const int steps = g->elem == ELEM_Q4_1 ? 2 * blocks : blocks;
    return U *
           ((steps + 5 + PARTS) * fabs((double)g->alpha) * sum + 4 * fabs((double)g->beta * old));
}

double product_bound(const struct gemm *g, double old, int i, int j)
{
    if (g->quantises)
        return quantised_bound(g, old, i, j);
    const int more = elem_in_blocks(g->elem) ? 2 : 0;
    double sum = 0;

    for (int p = 0; p < g->k; p++) {
        const float a = g->a[g->ta ? p * g->lda + i : i * g->lda + p];
        sum += fabs((double)(g->elem == ELEM_BF16 || g->rounds ? bf16_float(bf16_of(a)) : a)) *
               fabs(number_of_b(g, p, j));
    }
    return U * ((g->k + 4 + more) * fabs((double)g->alpha) * sum + 4 * fabs((double)g->beta * old));
}

/* ---- norms ----------------------------------------------------------------------------------- */

double norm_term(const struct norm *o, int i, int e)
{
    const ptrdiff_t at = (ptrdiff_t)i * o->n + e;

    return (double)o->x[at] + (o->add ? (double)o->add[at] : 0);
}

double norm_weight(const struct norm *o, int i, int e)
{
    return (double)o->weight[o->kind == NORM_SCALE ? 0 : norm_weights_at(o->heads, o->n, i) + e];
}

static double norm_bias(const struct norm *o, int i, int e)
{
    return o->bias ? (double)o->bias[norm_weights_at(o->heads, o->n, i) + e] : 0;
}

struct moments moments_of(const struct norm *o, int i)
{
    struct moments m = {0};
    double squares = 0;

    for (int e = 0; e < o->n; e++) {
        m.mean += norm_centred(o->kind) ? norm_term(o, i, e) / o->n : 0;
        m.largest = fmax(m.largest, fabs(norm_term(o, i, e)));
    }
    for (int e = 0; e < o->n; e++) {
        const double d = norm_term(o, i, e) - m.mean;
        squares += d * d;
        m.deviation = fmax(m.deviation, fabs(d));
    }
    m.root = o->kind == NORM_LAYER || o->kind == NORM_RMS ? sqrt(squares / o->n + (double)o->eps)
             : o->kind == NORM_SCALE                      ? fmax(sqrt(squares), (double)o->eps)
                                     : sqrt(squares / (o->n - 1)) + (double)o->eps;
    return m;
}

double norm_gain(const struct norm *o, const struct moments *m, int i, int e)
{
    const double xhat = (norm_term(o, i, e) - m->mean) / m->root;

    return o->ada_c != 0 ? fabs((double)o->ada_c) * (1 + 2 * fabs((double)o->ada_k) * fabs(xhat))
                         : fabs(norm_weight(o, i, e));
}

/* Centred: a deviation is off by the rounding of x + add, twice, its own and the mean's, and by the
 * sums: dd = U (2 T + (n+4) D), T the largest |x + add|, D the largest deviation. The root's
 * relative error is 2 dd/root, (n+3)/2 U from its sum and 4 U from the rest. Otherwise nothing
 * cancels: 1 U for x + add, as much and (n+3)/2 for the root, 6 for root, division, products; a
 * bias rounds once more. */
double norm_bound(const struct norm *o, const struct moments *m, double want, int i, int e)
{
    if (!norm_centred(o->kind))
        return U * (o->n / 2.0 + 10) * fabs(want - norm_bias(o, i, e)) +
               2 * U * (o->bias ? fabs(want) + fabs(norm_bias(o, i, e)) : 0);
    const double dd = U * (2 * m->largest + (o->n + 4) * m->deviation);
    const double root = 2 * dd / m->root + U * ((o->n + 3) / 2.0 + 4);
    return norm_gain(o, m, i, e) / m->root * (dd + m->deviation * (root + 3 * U)) +
           2 * U * (fabs(want) + fabs(norm_bias(o, i, e)));
}

/* ---- activations ----------------------------------------------------------------------------- */

/* The logistic adds 6 U (exp 4, sum, quotient) to its argument's relative error times |z|, which is
 * 1 U for z = t, 2 U for z = beta t, and 9 U for the cubic: t in all three places, its constants
 * and five roundings. Products round a few times more. Below the normal numbers exp is 0. */
static struct exact by_logistic(double t, double z, double arg, bool times_t, double dz)
{
    const double s = 1 / (1 + exp(-z)), rest = 1 / (1 + exp(z)), scale = times_t ? fabs(t) : 1;
    const double terms = (times_t ? s : 0) + scale * s * rest * fabs(dz);
    struct exact x = {.f = scale * s, .slope = (times_t ? s : 0) + t * s * rest * dz};

    if (times_t)
        x.f = t * s;
    else
        x.slope = s * rest;
    x.f_bound = U * (arg * fabs(z) + 20) * fabs(x.f) + 4 * SMALLEST * (1 + scale);
    x.slope_bound = U * (3 * arg * fabs(z) + 60) * terms + 4 * SMALLEST * (1 + fabs(t * dz));
    return x;
}

/* x Phi(x) = max(0, x) - a Q, a = |x|, Q = Phi(-a). a is off by 1 U, to which Q responds a^2 + 1
 * times, and a^2 / 2 likewise, through exp's exponent; exp, the polynomial, the quotient and the
 * products are good to 30. */
static struct exact by_tail(double t)
{
    const double a = fabs(t), Q = erfc(a / sqrt(2)) / 2;
    const double density = exp(-a * a / 2) / sqrt(2 * M_PI);
    struct exact x = {.f = t * erfc(-t / sqrt(2)) / 2};

    x.slope = (t < 0 ? Q : 1 - Q) + t * density;
    x.f_bound = U * ((2 * a * a + 30) * a * Q + 4 * fabs(x.f)) + 4 * SMALLEST * (1 + a);
    x.slope_bound = U * (2 * a * a + 40) * (Q + a * density) + 4 * U * fabs(x.slope) +
                    U * (t >= 0) + 4 * SMALLEST * (1 + a);
    return x;
}

/* e^t on the left: exp's argument is off by 1 U, the rest is exp's own error and a rounding or two.
 */
static struct exact by_exp(double t)
{
    const double f = t > 0 ? 0 : exp(t), bound = U * (fabs(t) + 20) * f + 4 * SMALLEST;

    if (t > 0)
        return (struct exact){t + 1, 1, 2 * U * (t + 1), 0};
    return (struct exact){f, f, bound, bound};
}

/* e^t is infinite or finite on either side of the last float, so arguments keep away from it. Above
 * 0 the vectors square e^(t/2). */
static struct exact by_full_exp(double t)
{
    const double f = exp(t), bound = U * (fabs(t) + 20) * f + 4 * SMALLEST;

    return (struct exact){f, f, bound, bound};
}

/* log(1 + e^t) = max(0, t) + log1p(e), e = e^-|t|: the argument is off by 1 U, to which it responds
 * s(t) times; exp and the logarithm by 4 U each, their sum and the reference's store by 1 U. */
static struct exact by_softplus(double t)
{
    const double s = 1 / (1 + exp(-t)), f = fmax(t, 0) + log1p(exp(-fabs(t)));

    return (struct exact){f, s, U * (fabs(t) * s + 10 * f) + 4 * SMALLEST,
                          U * (fabs(t) + 20) * s + 4 * SMALLEST};
}

/* tanh is good to 8 U, the slope 4 beta s s' as the logistics are. */
static struct exact by_tanh(double t, double beta)
{
    const double z = 2 * beta * t, s = 1 / (1 + exp(-z)), rest = 1 / (1 + exp(z));
    const double slope = 4 * beta * s * rest;

    return (struct exact){tanh(beta * t), slope,
                          U * (2 * fabs(t) * slope + 12 * fabs(tanh(beta * t))) + 4 * SMALLEST,
                          U * (6 * fabs(z) + 60) * slope + 8 * SMALLEST};
}

struct exact exactly(enum act_kind kind, double t, double beta)
{
    const double c = 2 * sqrt(2 / M_PI);

    switch (kind) {
    case ACT_RELU:
        return (struct exact){t < 0 ? 0 : t, t > 0, U * fabs(t), 0};
    case ACT_SIGMOID:
        return by_logistic(t, t, 1, false, 1);
    case ACT_SWISH:
        return by_logistic(t, beta * t, 2, true, beta);
    case ACT_GELU:
        return by_tail(t);
    case ACT_GELU_TANH:
        return by_logistic(t, c * (t + 0.044715 * t * t * t), 9, true,
                           c * (1 + 3 * 0.044715 * t * t));
    case ACT_ELU1:
        return by_exp(t);
    case ACT_TANH:
        return by_tanh(t, beta);
    case ACT_RELU_SQUARED:
        return t < 0 ? (struct exact){0}
                     : (struct exact){t * t, 2 * t, 4 * U * t * t, 2 * U * fabs(t)};
    case ACT_SOFTPLUS:
        return by_softplus(t);
    case ACT_LOG_SIGMOID: {
        struct exact x = by_softplus(-t);
        x.f = -x.f;
        return x;
    }
    case ACT_EXP:
        return by_full_exp(t);
    case ACT_HALF_SIGMOID:
        return t < 0 ? by_logistic(t, t, 1, false, 1)
                     : (struct exact){t + 0.5, 1, 2 * U * (t + 0.5), 0};
    default:
        return (struct exact){t, 1, U * fabs(t), 0};
    }
}
