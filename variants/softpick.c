/* SPDX-License-Identifier: MIT
 *
 * Softpick: Zuhri et al. 2025, "Softpick: No Attention Sink, No Massive Activations with Rectified
 * Softmax".
 *
 *   t_ij = e^(s_ij - m_i) - e^(-m_i),  m_i the largest score of the keys that query i sees
 *   p_ij = max(0, t_ij) / (sum of |t_ik| over these k + 10^-6)
 *
 * Keys of scores up to 0 have no weight, and a query whose scores all are attends to nothing. Where
 * scores are near 0, t is their difference from 0, which subtracting exponentials would lose. */
#include "variants/parts/parts.h"

static const double eps = 1e-6;

/* keep, with D the divisor: e^(s - m) / D of scores above 0, t / D < 0 of those below. m from 0 on:
 * with less there are no weights. */
static void forward(double *p, double *keep, int n)
{
    double most = 0, sum = eps;

    for (int j = 0; j < n; j++)
        most = fmax(most, p[j]);
    for (int j = 0; j < n; j++) {
        const bool above = !(p[j] <= 0), hidden = p[j] == -INFINITY; /* NaN stays */
        const double below = hidden ? 0 : exp(-most) * expm1(p[j]);
        keep[j] = above ? exp(p[j] - most) : below;
        p[j] = above ? -keep[j] * expm1(-p[j]) : 0;
        sum += above ? p[j] : -below;
    }
    for (int j = 0; j < n; j++)
        p[j] /= sum, keep[j] /= sum;
}

/* With c = sum of p d:  d_s = e^(s - m) / D (d - c) above 0, e^(s - m) / D c below, and at m, on which
 * D depends by eps, less c eps / D. Weights nearly add up to 1 while D may be small, which enlarges
 * what d - c loses: it is computed from differences to the d of the largest score, and from what is
 * lacking to 1. At m, keep is 1 / D and p (1 - e^-m) / D. */
static void backward(double *d, const double *p, const double *keep, int n)
{
    int top = 0;
    double all = 0, rest = 0, lacks = 0;

    for (int j = 1; j < n; j++)
        top = keep[j] > keep[top] ? j : top;
    const double d_top = d[top], faint = keep[top] - p[top], part = eps * keep[top];
    for (int j = 0; j < n; j++) {
        all += p[j] * d[j];
        rest += p[j] * (d[j] - d_top);
        lacks -= fmin(keep[j], 0);
    }
    for (int j = 0; j < n; j++) {
        const double above = d[j] - d_top - rest + d_top * (lacks + part);
        d[j] = keep[j] > 0 ? keep[j] * above : keep[j] < 0 ? (keep[j] + faint) * all : 0;
    }
    d[top] -= all * part;
}

/* A query that sees one key has the weight t / (t + eps), of slope eps / t^2, which changes by 2 / t
 * of itself. Chance says how near to 0 a t is: of the first queries of the models that `bench check`
 * runs, a few hundred with scores of about 1, one in a hundred such sets has a t below 2^-15. */
static double amplifies(bool backward)
{
    const double t = 0x1p-15;

    return backward ? 2 / t : eps / (t * t);
}

const struct pos extra_softpick = {
    .name = "softpick",
    .excludes = EXCLUDES(HAS_SOFT_CAP),
    .weigh = &(const struct attn_weigh){forward, backward},
    .amplifies = amplifies,
};

const struct variant variant_softpick = {
    .name = "softpick",
    .paper = "Zuhri et al. 2025, arXiv:2504.20966",
    .about = "scores above 0 alone have weights, which need not add up to 1",
    AS_ROPE,
    .attn_extra = &extra_softpick,
};
