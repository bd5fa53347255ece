/* SPDX-License-Identifier: MIT
 *
 * Dynamic routing (Li et al. 2019, arXiv:1904.03100; Sabour et al. 2017, arXiv:1710.09829). V_hn are
 * the votes of head_capsules.c,
 *
 *   squash(x) = x |x|^2 / ((1 + |x|^2) sqrt(|x|^2 + 1e-9))
 *
 * and for each iteration, with b_hn = 0 at first:
 *
 *   c_hn  = softmax over n of b_hn
 *   S_n   = sum_h c_hn V_hn
 *   y_n   = squash(S_n)
 *   b_hn += y_n . V_hn
 *
 * Kept of each iteration: the shares c and the sums S. */
#include "head_capsules.h"

static const double squash_eps = 1e-9;

/* squash(x) = factor(|x|^2) x, and its slope by |x|^2 */
static double factor(double n2) { return n2 / ((1 + n2) * sqrt(n2 + squash_eps)); }

static double factor_slope(double n2)
{
    const double root = sqrt(n2 + squash_eps);

    return 1 / ((1 + n2) * (1 + n2) * root) - n2 / (2 * (1 + n2) * root * (n2 + squash_eps));
}

static void squash(float *y, const float *x, int n)
{
    const double f = factor(dot_in_order(x, x, n));

    for (int e = 0; e < n; e++)
        y[e] = (float)(f * (double)x[e]);
}

/* c [N] = softmax of b [N], which may be c. */
static void softmax_row(float *c, const float *b, int N)
{
    float most = b[0];
    double sum = 0;

    for (int n = 1; n < N; n++)
        most = fmaxf(most, b[n]);
    for (int n = 0; n < N; n++)
        sum += exp((double)(b[n] - most));
    for (int n = 0; n < N; n++)
        c[n] = (float)(exp((double)(b[n] - most)) / sum);
}

/* y [D] of one position; b [H,N] is work space. */
static void agree(const struct vote *p, float *y, float *b)
{
    memset(b, 0, sizeof(float) * (size_t)(p->H * p->N));
    for (int t = 0; t < p->iters; t++) {
        float *const c = p->shares + (ptrdiff_t)t * p->H * p->N;
        float *const S = p->sums + (ptrdiff_t)t * p->D;
        memset(S, 0, sizeof(float) * (size_t)p->D);
        for (int h = 0; h < p->H; h++) {
            softmax_row(c + (ptrdiff_t)h * p->N, b + (ptrdiff_t)h * p->N, p->N);
            for (int e = 0; e < p->D; e++)
                S[e] += c[h * p->N + e / p->width] * p->votes[(ptrdiff_t)h * p->D + e];
        }
        for (int n = 0; n < p->N; n++)
            squash(y + (ptrdiff_t)n * p->width, S + (ptrdiff_t)n * p->width, p->width);
        for (int i = 0; i < p->H * p->N && t + 1 < p->iters; i++) {
            const ptrdiff_t n = i % p->N, h = i / p->N;
            b[i] +=
                (float)dot_in_order(y + n * p->width, p->votes + h * p->D + n * p->width, p->width);
        }
    }
}

/* ---- backward ----------------------------------------------------------------------------- */

/* d of squash(x) by x, times d_y. */
static void squash_grad(float *d_x, const float *x, const float *d_y, int n)
{
    const double n2 = dot_in_order(x, x, n), f = factor(n2),
                 along = 2 * factor_slope(n2) * dot_in_order(x, d_y, n);

    for (int e = 0; e < n; e++)
        d_x[e] = (float)(f * (double)d_y[e] + along * (double)x[e]);
}

/* d_S [D] and d_b [H,N] are work space. What b gathers reaches all iterations before. */
static void agree_grad(const struct vote *p, float *d_V, float *d_y, float *d_S, float *d_b)
{
    const ptrdiff_t D = p->D, N = p->N, width = p->width;

    memset(d_V, 0, sizeof(float) * (size_t)(p->H * D));
    memset(d_b, 0, sizeof(float) * (size_t)(p->H * N));
    for (int t = p->iters - 1; t >= 0; t--) {
        const float *const c = p->shares + (ptrdiff_t)t * p->H * N, *const S = p->sums + t * D;
        for (ptrdiff_t n = 0; n < N; n++)
            squash_grad(d_S + n * width, S + n * width, d_y + n * width, p->width);
        for (ptrdiff_t h = 0; h < p->H; h++) {
            const float *const V = p->votes + h * D, *const share = c + h * N;
            double mean = 0;
            for (ptrdiff_t n = 0; n < N; n++)
                mean += (double)share[n] * dot_in_order(d_S + n * width, V + n * width, p->width);
            for (ptrdiff_t n = 0; n < N; n++)
                d_b[h * N + n] +=
                    (float)((double)share[n] *
                            (dot_in_order(d_S + n * width, V + n * width, p->width) - mean));
            for (ptrdiff_t e = 0; e < D; e++)
                d_V[h * D + e] += share[e / width] * d_S[e];
        }
        if (t == 0)
            return;
        /* b of this iteration has y of the one before: y is made again in d_S */
        const float *const before = p->sums + (t - 1) * D;
        memset(d_y, 0, sizeof(float) * (size_t)D);
        for (ptrdiff_t n = 0; n < N; n++)
            squash(d_S + n * width, before + n * width, p->width);
        for (ptrdiff_t h = 0; h < p->H; h++)
            for (ptrdiff_t e = 0; e < D; e++) {
                d_y[e] += d_b[h * N + e / width] * p->votes[h * D + e];
                d_V[h * D + e] += d_b[h * N + e / width] * d_S[e];
            }
    }
}

static int sums(int D, int N) { return D; }

const struct agreement agreement_dynamic = {
    .sums = sums, .sums_grad = sums, .flop = 4, .forward = agree, .backward = agree_grad};
