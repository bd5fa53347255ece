/* SPDX-License-Identifier: MIT
 *
 * Order statistics, the interval of a median, and the rule for disturbed samples. */
#include "stats.h"

static bool meaningless(const double *sorted, int n) { return n < 1 || isnan(sorted[n - 1]); }

double stats_quantile(const double *sorted, int n, double p)
{
    if (meaningless(sorted, n))
        return NAN;
    const double at = (n - 1) * p;
    const int i = clamp_int((int)at, 0, n - 1), next = min_int(i + 1, n - 1);
    return sorted[i] + (at - i) * (sorted[next] - sorted[i]);
}

double stats_median(const double *sorted, int n)
{
    if (meaningless(sorted, n))
        return NAN;
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

double stats_p90(const double *sorted, int n)
{
    return n < P90_SAMPLES ? NAN : stats_quantile(sorted, n, 0.90);
}

double stats_p99(const double *sorted, int n)
{
    return n < P99_SAMPLES ? NAN : stats_quantile(sorted, n, 0.99);
}

double stats_mean(const double *x, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += x[i];
    return n < 1 ? NAN : sum / n;
}

double stats_stddev(const double *x, int n)
{
    const double mean = stats_mean(x, n);
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return n < 2 ? NAN : sqrt(sum / (n - 1));
}

double stats_mad(const double *sorted, int n, double *work)
{
    const double median = stats_median(sorted, n);

    for (int i = 0; i < n; i++)
        work[i] = fabs(sorted[i] - median);
    sort_numbers(work, n);
    return stats_median(work, n);
}

double stats_drift_pct(const double *x, int n, double *work)
{
    const int half = n / 2;

    if (half < 1)
        return NAN;
    memcpy(work, x, (size_t)half * sizeof(*x));
    memcpy(work + half, x + n - half, (size_t)half * sizeof(*x));
    sort_numbers(work, half);
    sort_numbers(work + half, half);
    return 100 * (stats_median(work + half, half) / stats_median(work, half) - 1);
}

/* The largest k with P(B <= k) <= 2.5 % for B successes of n fair coins; n >= INTERVAL_SAMPLES. */
static int median_tail(int n)
{
    double log_term = -n * log(2), sum = exp(log_term);
    int k = -1;

    while (sum <= 0.025) {
        k++;
        log_term += log((double)(n - k) / (k + 1));
        sum += exp(log_term);
    }
    return k;
}

struct interval stats_median_interval(const double *sorted, int n)
{
    struct interval ci = {.low = NAN, .mid = stats_median(sorted, n), .high = NAN};

    if (n < INTERVAL_SAMPLES || isnan(ci.mid))
        return ci;
    const int k = median_tail(n);
    ci.low = sorted[k];
    ci.high = sorted[n - 1 - k];
    return ci;
}

struct interval stats_range(const double *sorted, int n)
{
    const bool none = n < 3 || meaningless(sorted, n);

    return (struct interval){none ? NAN : sorted[0], stats_median(sorted, n),
                             none ? NAN : sorted[n - 1]};
}

struct interval stats_share(double share, double n)
{
    const double z = 1.959964, by = 1 + z * z / n, mid = (share + z * z / (2 * n)) / by;
    const double half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / by;

    return (struct interval){fmax(0, mid - half), share, fmin(1, mid + half)};
}

struct interval stats_log_ratio(const double *after, const double *before, int n, double *work)
{
    for (int i = 0; i < n; i++)
        work[i] = after[i] > 0 && before[i] > 0 ? log(after[i] / before[i]) : NAN;
    sort_numbers(work, n);
    return n < INTERVAL_SAMPLES ? stats_range(work, n) : stats_median_interval(work, n);
}

bool stats_may_leave_out(int n, int disturbed)
{
    const int rest = n - disturbed;

    return rest >= INTERVAL_SAMPLES && 2 * rest >= n;
}

int stats_disturbed(const struct sample *s, int n)
{
    int disturbed = 0;

    for (int i = 0; i < n; i++)
        disturbed += s[i].disturbed;
    return disturbed;
}

int stats_usable(const struct sample *s, int n, double *per_call, bool *noisy)
{
    const int disturbed = stats_disturbed(s, n);
    const bool leave_out = stats_may_leave_out(n, disturbed);
    int used = 0;

    for (int i = 0; i < n; i++)
        if (!(leave_out && s[i].disturbed))
            per_call[used++] = s[i].wall_ns / s[i].calls;
    if (noisy)
        *noisy = disturbed > 0 && !leave_out;
    return used;
}
