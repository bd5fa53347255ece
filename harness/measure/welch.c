/* SPDX-License-Identifier: MIT
 *
 * Student's t, Welch's interval, Holm's correction. */
#include "welch.h"

struct group_stats group_stats(const double *x, int n)
{
    return (struct group_stats){n, stats_mean(x, n), stats_stddev(x, n)};
}

/* The continued fraction of I_x(a, b), DLMF 8.17.22, by Lentz's method; converges fast for
 * x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    enum { TERMS = 1000 };
    const double tiny = 1e-300, close = 1e-15;
    double c = 1, d = 1 - (a + b) * x / (a + 1);

    d = 1 / (fabs(d) < tiny ? tiny : d);
    double value = d;
    for (int m = 1; m < TERMS; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        const double term[] = {even, odd};
        double last = 0;
        for (int i = 0; i < 2; i++) {
            d = 1 + term[i] * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + term[i] / c;
            c = fabs(c) < tiny ? tiny : c;
            last = c * d;
            value *= last;
        }
        if (fabs(last - 1) < close)
            break;
    }
    return value;
}

/* I_x(a, b); `y` is 1 - x, given apart because x may be close to 1. */
static double incomplete_beta(double a, double b, double x, double y)
{
    if (x <= 0 || y <= 0)
        return x <= 0 ? 0 : 1;
    const double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(y));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                     : 1 - front * beta_fraction(b, a, y) / b;
}

double student_two_sided(double t, double df)
{
    if (isnan(t) || !(df > 0))
        return NAN;
    if (isinf(t))
        return 0;
    const double square = t * t;
    return incomplete_beta(df / 2, 0.5, df / (df + square), square / (df + square));
}

double student_quantile(double p, double df)
{
    double low = 0, high = 1;

    if (!(p > 0 && p < 1 && df > 0))
        return NAN;
    while (student_two_sided(high, df) > p && high < 1e150)
        high *= 2;
    while (high - low > 1e-14 * high) {
        const double mid = (low + high) / 2;
        if (mid <= low || mid >= high)
            break;
        if (student_two_sided(mid, df) > p)
            low = mid;
        else
            high = mid;
    }
    return (low + high) / 2;
}

struct interval mean_interval(struct group_stats g)
{
    const double half = g.n < 2 ? NAN : student_quantile(0.05, g.n - 1) * g.sd / sqrt(g.n);

    return (struct interval){.low = g.mean - half, .mid = g.mean, .high = g.mean + half};
}

/* The x at which I_x(a, b), which rises with it, is p. */
static double beta_quantile(double p, double a, double b)
{
    enum { HALVINGS = 60 };
    double low = 0, high = 1;

    for (int i = 0; i < HALVINGS; i++) {
        const double mid = (low + high) / 2;
        if (incomplete_beta(a, b, mid, 1 - mid) < p)
            low = mid;
        else
            high = mid;
    }
    return (low + high) / 2;
}

struct interval share_interval(int k, int n)
{
    const double miss = 0.05; /* of a 95 % interval */

    return (struct interval){.low = k == 0 ? 0 : beta_quantile(miss / 2, k, n - k + 1),
                             .mid = (double)k / n,
                             .high = k == n ? 1 : beta_quantile(1 - miss / 2, k + 1, n - k)};
}

struct welch difference(double diff, double error, double df)
{
    const double miss = 0.05; /* of a 95 % interval */
    const double half = error > 0 ? student_quantile(miss, df) * error : error;

    return (struct welch){{diff - half, diff, diff + half},
                          df,
                          error > 0    ? student_two_sided(diff / error, df)
                          : error == 0 ? diff == 0
                                       : NAN,
                          error};
}

struct welch welch(struct group_stats a, struct group_stats b)
{
    const double diff = b.mean - a.mean;

    if (a.n < 2 || b.n < 2 || isnan(diff))
        return (struct welch){{NAN, diff, NAN}, NAN, NAN, NAN};
    const double va = a.sd * a.sd / a.n, vb = b.sd * b.sd / b.n, variance = va + vb;
    if (!(variance > 0))
        return difference(diff, 0, a.n + b.n - 2);
    return difference(diff, sqrt(variance),
                      variance * variance / (va * va / (a.n - 1) + vb * vb / (b.n - 1)));
}

double least_shown(double error, double df, int tested, double effect)
{
    const double first = student_quantile(0.05 / tested, df), own = student_quantile(0.05, df);

    return fmax(first * error, effect + own * error) + student_quantile(0.4, df) * error;
}

/* The mean of group i. */
static double group_mean(const double *x, int k, int m, int i)
{
    double sum = 0;

    for (int s = 0; s < m; s++)
        sum += x[s * k + i];
    return sum / m;
}

double cochran(const double *x, int k, int m)
{
    double most = 0, all = 0;

    for (int i = 0; i < k; i++) {
        const double mean = group_mean(x, k, m, i);
        double square = 0;
        for (int s = 0; s < m; s++)
            square += (x[s * k + i] - mean) * (x[s * k + i] - mean);
        most = fmax(most, square);
        all += square;
    }
    /* The share of one group against the rest: F with m-1 and (k-1)(m-1) degrees of freedom. */
    const double a = (m - 1) / 2.0, share = most / all;
    return all > 0 ? fmin(1, k * incomplete_beta(a * (k - 1), a, 1 - share, share)) : NAN;
}

double two_way_sd(const double *x, int k, int m)
{
    double *const r = need_room((size_t)k * (size_t)m, sizeof(*r));
    double sum = 0;

    for (int s = 0; s < m; s++)
        for (int i = 0; i < k; i++)
            r[s * k + i] = x[s * k + i] - group_mean(x, k, m, i);
    for (int s = 0; s < m; s++) {
        const double mean = stats_mean(r + s * k, k);
        for (int i = 0; i < k; i++)
            sum += (r[s * k + i] - mean) * (r[s * k + i] - mean);
    }
    free(r);
    return sqrt(sum / ((k - 1.0) * (m - 1)));
}

/* Of Holm the smallest counts `asked` times, the next one less, and none less than one before it. Of
 * Benjamini and Hochberg q of the largest is its p, and of the k-th smallest p n / k, or that of the
 * one after it. */
static void correct(double *p, int n, double *work, bool from_smallest)
{
    int asked = 0;
    double before = from_smallest ? 0 : 1;

    for (int i = 0; i < n; i++) {
        work[i] = p[i];
        asked += !isnan(p[i]);
    }
    for (int k = asked; k > 0; k--) {
        int at = -1;
        for (int i = 0; i < n; i++)
            if (!isnan(work[i]) &&
                (at < 0 || (from_smallest ? work[i] < work[at] : work[i] > work[at])))
                at = i;
        before = from_smallest ? fmax(before, fmin(1, k * work[at]))
                               : fmin(before, asked * work[at] / k);
        p[at] = before;
        work[at] = NAN;
    }
}

void benjamini_hochberg(double *p, int n, double *work) { correct(p, n, work, false); }

void holm(double *p, int n, double *work) { correct(p, n, work, true); }

double pooled_sd(const struct group_stats *g, int n)
{
    double sum = 0;
    int df = 0;

    for (int i = 0; i < n; i++)
        if (g[i].n >= 2 && isfinite(g[i].sd)) {
            sum += (g[i].n - 1) * g[i].sd * g[i].sd;
            df += g[i].n - 1;
        }
    return df > 0 ? sqrt(sum / df) : NAN;
}
