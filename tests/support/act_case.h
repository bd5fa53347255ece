/* SPDX-License-Identifier: MIT
 *
 * For tests of activations and gated units: operands, and each curve in double with what rounding
 * may cost its value and its slope. */
#ifndef ACT_CASE_H
#define ACT_CASE_H

#include "attn_case.h"

#include <criterion/parameterized.h>

static inline struct criterion_test_params every_backend(void)
{
    static int which[32];
    size_t n = 0;

    for (int i = 0; backends[i]; i++)
        which[n++] = i;
    return cr_make_param_array(int, which, n);
}

/* Operands of act [rows,n], and of glu, whose a and b are columns of one [rows,ld]. */
struct units {
    enum act_kind kind;
    int rows, n;
    ptrdiff_t ld;
    size_t size, wide;
    float *x, *add, *pre, *a_bias, *b_bias, *d_y, beta;
};

static inline void make(struct units *o, enum act_kind kind, int rows, int n, float spread)
{
    const size_t size = (size_t)(rows * n);

    *o = (struct units){.kind = kind, .rows = rows, .n = n, .size = size, .beta = 1.375f};
    o->ld = 2 * n + 3;
    o->wide = (size_t)(rows * o->ld);
    o->x = normal(size, "x", 0, spread), o->add = normal(size, "add", 0, 1);
    o->pre = normal(o->wide, "pre", 0, spread), o->d_y = normal(size, "d_y", 0, 1);
    o->a_bias = normal((size_t)n, "a", 0, 1), o->b_bias = normal((size_t)n, "b", 0, 1);
}

static inline void drop(struct units *o)
{
    release(o->x), release(o->add), release(o->pre), release(o->d_y);
    release(o->a_bias), release(o->b_bias);
}

/* What f and its slope are made of, in double, and what rounding may cost them. Every kind is given
 * t, an argument rounded once. */
struct exact {
    double f, slope;
    double f_bound, slope_bound;
};

/* The logistic adds 6 U (exp 4, sum, quotient) to what |z| makes of its argument's relative error,
 * 1 U for z = t, 2 U for z = beta t, and 9 U for the cubic: t in all three places, its constants
 * and five roundings. Products round a few times more. Below the normal numbers exp is 0. */
static inline struct exact by_logistic(double t, double z, double arg, bool times_t, double dz)
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

/* x Phi(x) = max(0, x) - a Q, a = |x|, Q = Phi(-a). a is off by 1 U, which Q feels a^2 + 1 times,
 * and a^2 / 2, which exp's exponent feels as often; exp, the polynomial, the quotient and the
 * products are good to 30. */
static inline struct exact by_tail(double t)
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

/* e^t on the left: exp's argument is off by 1 U, the rest is exp's own and a rounding or two. */
static inline struct exact by_exp(double t)
{
    const double f = t > 0 ? 0 : exp(t), bound = U * (fabs(t) + 20) * f + 4 * SMALLEST;

    if (t > 0)
        return (struct exact){t + 1, 1, 2 * U * (t + 1), 0};
    return (struct exact){f, f, bound, bound};
}

static inline struct exact exactly(enum act_kind kind, double t, double beta)
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
    default:
        return (struct exact){t, 1, U * fabs(t), 0};
    }
}

static inline double beta_of(const struct units *o)
{
    return o->kind == ACT_SWISH ? (double)o->beta : 1;
}

#endif
