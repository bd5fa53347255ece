/* SPDX-License-Identifier: MIT
 *
 * Order statistics, the percentile bootstrap, and the rule for disturbed samples. */
#include "stats.h"

#include "variants/base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int ascending_nan_last(const void *pa, const void *pb)
{
    const double a = *(const double *)pa, b = *(const double *)pb;

    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return (a > b) - (a < b);
}

void stats_sort(double *x, int n)
{
    if (n > 1)
        qsort(x, (size_t)n, sizeof(*x), ascending_nan_last);
}

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
    stats_sort(work, n);
    return stats_median(work, n);
}

double stats_drift_pct(const double *x, int n, double *work)
{
    const int half = n / 2;

    if (half < 1)
        return NAN;
    memcpy(work, x, (size_t)half * sizeof(*x));
    memcpy(work + half, x + n - half, (size_t)half * sizeof(*x));
    stats_sort(work, half);
    stats_sort(work + half, half);
    return 100 * (stats_median(work + half, half) / stats_median(work, half) - 1);
}

/* The value at place k (0 = smallest) of a resample that holds sorted[i] count[i] times. */
static double resample_at(const double *sorted, const double *count, int k)
{
    double seen = count[0];
    int i = 0;

    while (seen <= k)
        seen += count[++i];
    return sorted[i];
}

struct interval stats_median_interval(const double *sorted, int n, uint64_t seed, double *work)
{
    const uint64_t stream = rng_stream("stats.bootstrap");
    struct interval ci = {.low = NAN, .mid = stats_median(sorted, n), .high = NAN};
    double median[BOOTSTRAP_RESAMPLES];

    if (n < 2 || isnan(ci.mid))
        return ci;
    /* A median needs only how often each rank was drawn: no resample is sorted. */
    for (int r = 0; r < BOOTSTRAP_RESAMPLES; r++) {
        memset(work, 0, (size_t)n * sizeof(*work));
        for (int i = 0; i < n; i++) {
            const uint64_t bits = rng_u32(seed, stream, (uint64_t)r * (uint64_t)n + (uint64_t)i);
            work[bits * (uint64_t)n >> 32] += 1;
        }
        median[r] = (resample_at(sorted, work, (n - 1) / 2) + resample_at(sorted, work, n / 2)) / 2;
    }
    stats_sort(median, BOOTSTRAP_RESAMPLES);
    ci.low = stats_quantile(median, BOOTSTRAP_RESAMPLES, 0.025);
    ci.high = stats_quantile(median, BOOTSTRAP_RESAMPLES, 0.975);
    return ci;
}

struct interval stats_log_ratio(const double *after, const double *before, int n, uint64_t seed,
                                double *work)
{
    for (int i = 0; i < n; i++)
        work[i] = after[i] > 0 && before[i] > 0 ? log(after[i] / before[i]) : NAN;
    stats_sort(work, n);
    return stats_median_interval(work, n, seed, work + n);
}

/* May the disturbed ones among n samples be left out? */
static bool may_leave_out(int n, int disturbed)
{
    const int rest = n - disturbed;

    return rest >= 5 && 2 * rest >= n;
}

static int count_disturbed(const struct sample *s, int n)
{
    int disturbed = 0;

    for (int i = 0; i < n; i++)
        disturbed += s[i].disturbed;
    return disturbed;
}

int stats_usable(const struct sample *s, int n, double *per_call, bool *noisy)
{
    const int disturbed = count_disturbed(s, n);
    const bool leave_out = may_leave_out(n, disturbed);
    int used = 0;

    for (int i = 0; i < n; i++)
        if (!(leave_out && s[i].disturbed))
            per_call[used++] = s[i].wall_ns / s[i].calls;
    if (noisy)
        *noisy = disturbed > 0 && !leave_out;
    return used;
}

static double cpu_median(const struct sample *s, int n, bool leave_out, double *work)
{
    int used = 0;

    for (int i = 0; i < n; i++)
        if (!(leave_out && s[i].disturbed))
            work[used++] = s[i].cpu_ns / s[i].calls;
    stats_sort(work, used);
    return stats_median(work, used);
}

struct summary summarize(const struct sample *s, int n, uint64_t seed, double *work)
{
    double *const sorted = work, *const in_time = work + n, *const spare = work + 2 * n;
    struct summary m = {.samples = n, .disturbed = count_disturbed(s, n)};

    for (int i = 0; i < n; i++)
        m.switches += s[i].involuntary_switches;
    m.used = stats_usable(s, n, in_time, &m.noisy);
    memcpy(sorted, in_time, (size_t)m.used * sizeof(*sorted));
    stats_sort(sorted, m.used);

    const struct interval ci = stats_median_interval(sorted, m.used, seed, spare);
    m.median = ci.mid;
    m.ci_low = ci.low;
    m.ci_high = ci.high;
    m.min = stats_quantile(sorted, m.used, 0);
    m.max = stats_quantile(sorted, m.used, 1);
    m.p90 = stats_p90(sorted, m.used);
    m.p99 = stats_p99(sorted, m.used);
    m.mean = stats_mean(in_time, m.used);
    m.stddev = stats_stddev(in_time, m.used);
    m.mad = stats_mad(sorted, m.used, spare);
    m.drift_pct = stats_drift_pct(in_time, m.used, spare);
    m.cpu_median = cpu_median(s, n, may_leave_out(n, m.disturbed), spare);
    return m;
}
