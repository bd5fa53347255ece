/* SPDX-License-Identifier: MIT
 *
 * Changes and verdicts. */
#include "verdict.h"

#include "variants/base/rng.h"

#include <math.h>
#include <string.h>

const char *const verdict_name[VERDICT_COUNT + 1] = {"same", "faster", "slower", "unclear"};
const char *const basis_name[BASIS_COUNT] = {"pairs", "cpu", "unpaired"};

double change_pct(double log) { return 100 * expm1(log); }

enum verdict verdict_of(struct interval log, double threshold)
{
    const double t = log1p(threshold);

    if (!(isfinite(log.low) && isfinite(log.mid) && isfinite(log.high)))
        return VERDICT_UNCLEAR;
    if (log.mid > t && log.low > 0)
        return VERDICT_SLOWER;
    if (log.mid < -t && log.high < 0)
        return VERDICT_FASTER;
    return log.low >= -t && log.high <= t ? VERDICT_SAME : VERDICT_UNCLEAR;
}

/* ---- pairs -------------------------------------------------------------------------------- */

static int count_disturbed(const struct pair *p, int n)
{
    int disturbed = 0;

    for (int i = 0; i < n; i++)
        disturbed += p[i].disturbed;
    return disturbed;
}

struct change change_of_pairs(const struct pair *p, int n, int threads, double threshold,
                              uint64_t seed, double *work)
{
    enum { LEAST = 5 };
    struct change c = {.n = n, .disturbed = count_disturbed(p, n), .basis = BASIS_PAIRS};
    const int rest = n - c.disturbed;
    const bool leave_out = rest >= LEAST && 2 * rest >= n;
    double *side[SIDES] = {work, work + n};
    int used = 0;

    if (c.disturbed > 0 && !leave_out) {
        c.basis = threads == 1 ? BASIS_CPU : BASIS_PAIRS;
        c.noisy = threads != 1;
    }
    for (int i = 0; i < n; i++) {
        if (leave_out && p[i].disturbed)
            continue;
        for (int s = 0; s < SIDES; s++)
            side[s][used] = c.basis == BASIS_CPU ? p[i].cpu[s] : p[i].wall[s];
        used++;
    }
    c.log = stats_log_ratio(side[AFTER], side[BEFORE], used, seed, work + 2 * n);
    for (int s = 0; s < SIDES; s++) {
        stats_sort(side[s], used);
        c.median[s] = stats_median(side[s], used);
    }
    c.verdict = c.noisy ? VERDICT_UNCLEAR : verdict_of(c.log, threshold);
    return c;
}

/* ---- samples of two moments --------------------------------------------------------------- */

/* Median of a resample of sorted[0..n); `count` [n] is work space. */
static double resampled_median(const double *sorted, int n, uint64_t seed, uint64_t stream, int r,
                               double *count)
{
    int at = 0, seen = 0;
    double low = NAN;

    memset(count, 0, (size_t)n * sizeof(*count));
    for (int i = 0; i < n; i++) {
        const uint64_t bits = rng_u32(seed, stream, (uint64_t)r * (uint64_t)n + (uint64_t)i);
        count[bits * (uint64_t)n >> 32] += 1;
    }
    for (;; at++) {
        seen += (int)count[at];
        if (isnan(low) && seen > (n - 1) / 2)
            low = sorted[at];
        if (seen > n / 2)
            return (low + sorted[at]) / 2;
    }
}

struct change change_of_samples(const struct sample *before, int n_before,
                                const struct sample *after, int n_after, double threshold,
                                uint64_t seed, double *work)
{
    const struct sample *samples[SIDES] = {before, after};
    const int n[SIDES] = {n_before, n_after};
    const uint64_t stream[SIDES] = {rng_stream("verdict.before"), rng_stream("verdict.after")};
    double *sorted[SIDES] = {work, work + n_before}, *count = work + n_before + n_after;
    struct change c = {.n = n_before + n_after, .basis = BASIS_MOMENTS};
    double d[BOOTSTRAP_RESAMPLES];
    int used[SIDES];

    c.log = (struct interval){NAN, NAN, NAN};
    c.verdict = VERDICT_UNCLEAR;
    for (int s = 0; s < SIDES; s++) {
        bool noisy;
        used[s] = stats_usable(samples[s], n[s], sorted[s], &noisy);
        stats_sort(sorted[s], used[s]);
        c.median[s] = stats_median(sorted[s], used[s]);
        c.noisy = c.noisy || noisy;
        for (int i = 0; i < n[s]; i++)
            c.disturbed += samples[s][i].disturbed;
    }
    if (used[BEFORE] < 2 || used[AFTER] < 2 || !(sorted[BEFORE][0] > 0 && sorted[AFTER][0] > 0) ||
        isnan(c.median[BEFORE]) || isnan(c.median[AFTER]))
        return c;
    for (int r = 0; r < BOOTSTRAP_RESAMPLES; r++)
        d[r] = log(resampled_median(sorted[AFTER], used[AFTER], seed, stream[AFTER], r, count) /
                   resampled_median(sorted[BEFORE], used[BEFORE], seed, stream[BEFORE], r, count));
    stats_sort(d, BOOTSTRAP_RESAMPLES);
    c.log.low = stats_quantile(d, BOOTSTRAP_RESAMPLES, 0.025);
    c.log.mid = log(c.median[AFTER] / c.median[BEFORE]);
    c.log.high = stats_quantile(d, BOOTSTRAP_RESAMPLES, 0.975);
    c.verdict = c.noisy ? VERDICT_UNCLEAR : verdict_of(c.log, threshold);
    return c;
}

/* ---- without samples ---------------------------------------------------------------------- */

struct change change_of_intervals(struct interval before, struct interval after, double threshold)
{
    const double d = log(after.mid / before.mid), a = log(before.high / before.low) / 2,
                 b = log(after.high / after.low) / 2, half = sqrt(a * a + b * b);

    struct change c = {
        .log = {d - half, d, d + half},
        .median = {before.mid, after.mid},
        .basis = BASIS_MOMENTS,
    };
    c.verdict = verdict_of(c.log, threshold);
    return c;
}

/* ---- over changes ------------------------------------------------------------------------- */

struct interval change_mean(const struct change *c, int n)
{
    double mid = 0, half = 0;
    int used = 0;

    for (int i = 0; i < n; i++) {
        const struct interval x = c[i].log;
        if (!(isfinite(x.low) && isfinite(x.mid) && isfinite(x.high)))
            continue;
        mid += x.mid;
        half += (x.high - x.low) / 2 * ((x.high - x.low) / 2);
        used++;
    }
    if (used == 0)
        return (struct interval){NAN, NAN, NAN};
    mid /= used;
    half = sqrt(half) / used;
    return (struct interval){mid - half, mid, mid + half};
}

double change_noise(const struct change *identical)
{
    return expm1((identical->log.high - identical->log.low) / 2);
}
