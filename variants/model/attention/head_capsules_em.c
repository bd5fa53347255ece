/* SPDX-License-Identifier: MIT
 *
 * EM routing (Hinton, Sabour and Frosst 2018, "Matrix capsules with EM routing", procedure 1; between
 * heads: Li et al. 2019, arXiv:1904.03100, section 3.2). V_hn are the votes of head_capsules.c; each
 * capsule n is a Gaussian without covariances, R_hn how much head h is assigned to it, 1/N at first.
 * For each iteration t = 1, 2, ..
 *
 *   M step   S_n    = sum_h R_hn
 *            mu_ne  = sum_h R_hn V_hne / S_n
 *            var_ne = sum_h R_hn (V_hne - mu_ne)^2 / S_n + eps
 *            a_n    = logistic(lambda_t (beta_a,n - S_n sum_e (beta_u,n + log(var_ne) / 2)))
 *   E step   R_hn   = a_n p_hn / sum over m: a_m p_hm, p_hn the density of V_hn
 *
 * and at the end y_n = a_n mu_n, as published for heads. lambda_t = lambda (1 - 0.95^t) grows from
 * iteration to iteration, as the paper asks for, which gives no numbers. All heads are active inputs.
 *
 * Kept of each iteration: log R as its shares; mu, var, sum_e log(var)/2 and the argument z of the
 * logistic function as its sums. Logarithms, because a capsule may lose all heads. */
#include "head_capsules.h"

/* Of one iteration: [D] mu, [D] var, [N] sum of log(var)/2, [N] z. Backward the same, of gradients,
 * without any in `spread`; those of beta stand behind. */
struct gaussians {
    float *mean, *var, *spread, *z;
};

static struct gaussians gaussians_at(float *sums, int D, int N)
{
    return (struct gaussians){sums, sums + D, sums + 2 * D, sums + 2 * D + N};
}

static struct gaussians gaussians_of(const struct vote *p, int t)
{
    return gaussians_at(p->sums + (ptrdiff_t)t * 2 * (p->D + p->N), p->D, p->N);
}

static float *log_shares(const struct vote *p, int t)
{
    return p->shares + (ptrdiff_t)t * p->H * p->N;
}

static double lambda_of(const struct vote *p, int t)
{
    return (double)p->lambda * (1 - pow(0.95, t + 1));
}

static double logistic(double z) { return z < 0 ? exp(z) / (1 + exp(z)) : 1 / (1 + exp(-z)); }
static double log_logistic(double z) { return z < 0 ? z - log1p(exp(z)) : -log1p(exp(-z)); }

/* What capsule n has of all heads: the largest log R, the sum relative to it, and S. */
struct load {
    double most, relative, sum;
};

static struct load load_of(const struct vote *p, const float *log_R, int n)
{
    struct load l = {(double)log_R[n], 0, 0};

    for (int h = 1; h < p->H; h++)
        l.most = fmax(l.most, (double)log_R[h * p->N + n]);
    for (int h = 0; h < p->H; h++)
        l.relative += exp((double)log_R[h * p->N + n] - l.most);
    l.sum = exp(l.most) * l.relative;
    return l;
}

/* R_hn / S_n */
static double weight(const struct vote *p, const float *log_R, struct load l, int h, int n)
{
    return exp((double)log_R[h * p->N + n] - l.most) / l.relative;
}

/* ---- forward ------------------------------------------------------------------------------ */

/* w [H] is work space. */
static void maximise(const struct vote *p, int t, int n, float *w)
{
    const float *const log_R = log_shares(p, t);
    const struct load l = load_of(p, log_R, n);
    const struct gaussians m = gaussians_of(p, t);
    double spread = 0;

    for (int h = 0; h < p->H; h++)
        w[h] = (float)weight(p, log_R, l, h, n);
    for (int e = n * p->width; e < (n + 1) * p->width; e++) {
        const float *const V = p->votes + e;
        double mean = 0, var = 0;
        for (ptrdiff_t h = 0; h < p->H; h++)
            mean += (double)w[h] * (double)V[h * p->D];
        for (ptrdiff_t h = 0; h < p->H; h++)
            var += (double)w[h] * ((double)V[h * p->D] - mean) * ((double)V[h * p->D] - mean);
        m.mean[e] = (float)mean;
        m.var[e] = (float)(var + (double)p->eps);
        spread += log((double)m.var[e]) / 2;
    }
    m.spread[n] = (float)spread;
    m.z[n] = (float)(lambda_of(p, t) *
                     ((double)p->beta_a[n] - l.sum * (p->width * (double)p->beta_u[n] + spread)));
}

/* log R [N] of head h, from the capsules of iteration t. */
static void expect(const struct vote *p, int t, int h, float *log_R)
{
    const struct gaussians m = gaussians_of(p, t);
    const float *const V = p->votes + (ptrdiff_t)h * p->D;
    double sum = 0;

    for (int n = 0; n < p->N; n++) {
        double near = 0;
        for (int e = n * p->width; e < (n + 1) * p->width; e++) {
            const double x = (double)V[e] - (double)m.mean[e];
            near += x * x / (2 * (double)m.var[e]);
        }
        log_R[n] = (float)(log_logistic((double)m.z[n]) - near - (double)m.spread[n]);
    }
    const double most = largest_of(log_R, p->N);
    for (int n = 0; n < p->N; n++)
        sum += exp((double)log_R[n] - most);
    for (int n = 0; n < p->N; n++)
        log_R[n] = (float)((double)log_R[n] - most - log(sum));
}

static void agree(const struct vote *p, float *y, float *room)
{
    for (int i = 0; i < p->H * p->N; i++)
        log_shares(p, 0)[i] = (float)-log(p->N);
    for (int t = 0; t < p->iters; t++) {
        for (int h = 0; h < p->H && t > 0; h++)
            expect(p, t - 1, h, log_shares(p, t) + (ptrdiff_t)h * p->N);
        for (int n = 0; n < p->N; n++)
            maximise(p, t, n, room);
    }
    const struct gaussians m = gaussians_of(p, p->iters - 1);
    for (int e = 0; e < p->D; e++)
        y[e] = (float)(logistic((double)m.z[e / p->width]) * (double)m.mean[e]);
}

/* ---- backward ----------------------------------------------------------------------------- */

/* Of capsule n in iteration t: from the gradients of mu, var and z to those of votes, beta, and
 * log R. With w = R / S, a mean has dw = V - mu, a variance (V - mu)^2; mu itself has no part in the
 * slope of the variance, because the distances to it sum to 0. */
static void maximise_grad(const struct vote *p, int t, int n, struct gaussians d, float *d_V,
                          float *d_log_R, float *d_beta)
{
    const float *const log_R = log_shares(p, t);
    const struct load l = load_of(p, log_R, n);
    const struct gaussians m = gaussians_of(p, t);
    const double d_in = lambda_of(p, t) * (double)d.z[n];
    const double d_sum = -d_in * (p->width * (double)p->beta_u[n] + (double)m.spread[n]);
    double along = 0;

    d_beta[n] += (float)d_in;
    d_beta[p->N + n] -= (float)(d_in * l.sum * p->width);
    for (int e = n * p->width; e < (n + 1) * p->width; e++)
        d.var[e] -= (float)(d_in * l.sum / (2 * (double)m.var[e]));
    for (ptrdiff_t h = 0; h < p->H; h++) {
        const double w = weight(p, log_R, l, (int)h, n);
        double d_w = 0;
        for (int e = n * p->width; e < (n + 1) * p->width; e++) {
            const double x = (double)p->votes[h * p->D + e] - (double)m.mean[e];
            d_w += (double)d.mean[e] * x + (double)d.var[e] * x * x;
            d_V[h * p->D + e] += (float)(w * ((double)d.mean[e] + 2 * (double)d.var[e] * x));
        }
        along += w * d_w;
        d_log_R[h * p->N + n] = (float)d_w;
    }
    for (ptrdiff_t h = 0; h < p->H; h++) {
        const double w = weight(p, log_R, l, (int)h, n);
        float *const to = &d_log_R[h * p->N + n];
        *to = (float)(w * ((double)*to - along) + w * l.sum * d_sum);
    }
}

/* Of head h: from the gradient of log R in iteration t + 1 to those of votes, and, added, of what
 * iteration t found. */
static void expect_grad(const struct vote *p, int t, int h, const float *d_log_R,
                        struct gaussians d, float *d_V)
{
    const float *const log_R = log_shares(p, t + 1) + (ptrdiff_t)h * p->N;
    const float *const V = p->votes + (ptrdiff_t)h * p->D;
    const struct gaussians m = gaussians_of(p, t);
    double all = 0;

    for (int n = 0; n < p->N; n++)
        all += (double)d_log_R[n];
    for (int n = 0; n < p->N; n++) {
        const double d_l = (double)d_log_R[n] - exp((double)log_R[n]) * all;
        d.z[n] += (float)(d_l * logistic(-(double)m.z[n]));
        for (int e = n * p->width; e < (n + 1) * p->width; e++) {
            const double var = (double)m.var[e], x = (double)V[e] - (double)m.mean[e];
            d_V[e] -= (float)(d_l * x / var);
            d.mean[e] += (float)(d_l * x / var);
            d.var[e] += (float)(d_l * (x * x / var - 1) / (2 * var));
        }
    }
}

static void agree_grad(const struct vote *p, float *d_V, float *d_y, float *sums, float *d_log_R)
{
    const struct gaussians d = gaussians_at(sums, p->D, p->N), last = gaussians_of(p, p->iters - 1);
    float *const d_beta = sums + 2 * (p->D + p->N);

    memset(d_V, 0, sizeof(float) * (size_t)(p->H * p->D));
    memset(sums, 0, sizeof(float) * (size_t)(2 * p->D + 4 * p->N));
    for (int e = 0; e < p->D; e++) {
        const int n = e / p->width;
        const double a = logistic((double)last.z[n]);
        d.mean[e] = (float)(a * (double)d_y[e]);
        d.z[n] += (float)(a * logistic(-(double)last.z[n]) * (double)d_y[e] * (double)last.mean[e]);
    }
    for (int t = p->iters - 1; t >= 0; t--) {
        for (int n = 0; n < p->N; n++)
            maximise_grad(p, t, n, d, d_V, d_log_R, d_beta);
        if (t == 0)
            return;
        memset(sums, 0, sizeof(float) * (size_t)(2 * (p->D + p->N)));
        for (int h = 0; h < p->H; h++)
            expect_grad(p, t - 1, h, d_log_R + (ptrdiff_t)h * p->N, d, d_V + (ptrdiff_t)h * p->D);
    }
}

static int sums(int D, int N) { return 2 * (D + N); }
static int sums_grad(int D, int N) { return 2 * (D + N) + 2 * N; }

const struct agreement agreement_em = {
    .sums = sums, .sums_grad = sums_grad, .flop = 9, .forward = agree, .backward = agree_grad};
