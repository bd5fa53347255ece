/* SPDX-License-Identifier: MIT
 *
 * Changes and verdicts. */
#include "verdict.h"

#include "launches.h"

#include "variants/base/rng.h"

const char *const verdict_name[VERDICT_COUNT + 1] = {
    [VERDICT_SAME] = "same",
    [VERDICT_FASTER] = "faster",
    [VERDICT_SLOWER] = "slower",
    [VERDICT_UNCLEAR] = "unclear",
    [VERDICT_UNSHOWN] = "no difference shown",
    [VERDICT_PROBABLY_FASTER] = "probably faster",
    [VERDICT_PROBABLY_SLOWER] = "probably slower",
};
const char *const basis_name[BASIS_COUNT] = {"pairs", "cpu", "unpaired", "unpaired cpu"};

enum { BOOTSTRAP_RESAMPLES = 1000 };

static const double TRUSTED_FACTOR = 2; /* of doubtful data */

double change_pct(double log) { return 100 * expm1(log); }

bool change_by_cpu(const struct change *c)
{
    return c->basis == BASIS_CPU || c->basis == BASIS_MOMENTS_CPU;
}

const char *change_remark(const struct change *c)
{
    const bool probably =
        c->verdict == VERDICT_PROBABLY_FASTER || c->verdict == VERDICT_PROBABLY_SLOWER;

    return probably && c->noisy ? "noisy"
           : probably && c->few ? "few samples"
           : change_by_cpu(c)   ? "CPU time"
                                : "";
}

enum verdict verdict_of(struct interval log, double threshold, double doubt)
{
    const double t = log1p(threshold);

    if (!(isfinite(log.low) && isfinite(log.mid) && isfinite(log.high)))
        return VERDICT_UNSHOWN;
    if (log.mid > t && log.low > 0)
        return log.low > doubt ? VERDICT_SLOWER : VERDICT_PROBABLY_SLOWER;
    if (log.mid < -t && log.high < 0)
        return log.high < -doubt ? VERDICT_FASTER : VERDICT_PROBABLY_FASTER;
    return log.low - doubt >= -t && log.high + doubt <= t ? VERDICT_SAME : VERDICT_UNSHOWN;
}

/* The verdict, with doubt as far as the data are doubtful. `stretch`: the least wall time over CPU
 * time of each side. */
static void judge(struct change *c, double threshold, int threads, const double stretch[SIDES])
{
    c->doubt = c->noisy || c->few ? log(TRUSTED_FACTOR) : 0;
    if (change_by_cpu(c) && threads > 1)
        c->doubt = fmax(c->doubt, fabs(log(stretch[AFTER] / stretch[BEFORE])));
    c->verdict = verdict_of(c->log, threshold, c->doubt);
}

/* ---- pairs -------------------------------------------------------------------------------- */

static int count_disturbed(const struct pair *p, int n)
{
    int disturbed = 0;

    for (int i = 0; i < n; i++)
        disturbed += p[i].disturbed;
    return disturbed;
}

/* Of each launch the median of ln(after/before), without the pairs that are left out. */
static struct launches launches_of_pairs(const struct pair *p, int n, bool cpu, bool leave_out,
                                         double *work)
{
    struct launches l = {0};

    for (int k = 0; k < LAUNCHES_MOST; k++) {
        int used = 0;
        for (int i = 0; i < n; i++) {
            const double *const x = cpu ? p[i].cpu : p[i].wall;
            if (p[i].launch == k && !(leave_out && p[i].disturbed))
                work[used++] = log(x[AFTER] / x[BEFORE]);
        }
        launches_add(&l, work, used);
    }
    return l;
}

struct change change_of_pairs(const struct pair *p, int n, int threads, double threshold,
                              double *work)
{
    struct change c = {.n = n, .disturbed = count_disturbed(p, n), .basis = BASIS_PAIRS};
    const bool leave_out = stats_may_leave_out(n, c.disturbed);
    double *side[SIDES] = {work, work + n}, stretch[SIDES] = {INFINITY, INFINITY};
    int used = 0;

    if (c.disturbed > 0 && !leave_out)
        c.basis = BASIS_CPU;
    for (int i = 0; i < n; i++) {
        if (leave_out && p[i].disturbed)
            continue;
        for (int s = 0; s < SIDES; s++) {
            side[s][used] = c.basis == BASIS_CPU ? p[i].cpu[s] : p[i].wall[s];
            stretch[s] = fmin(stretch[s], p[i].wall[s] / p[i].cpu[s]);
        }
        used++;
    }
    c.few = used < INTERVAL_SAMPLES;
    c.log = stats_log_ratio(side[AFTER], side[BEFORE], used, work + 2 * n);
    const struct launches l =
        launches_of_pairs(p, n, c.basis == BASIS_CPU, leave_out, work + 2 * n);
    if (!c.few)
        c.log = launches_interval(c.log, &l);
    for (int s = 0; s < SIDES; s++) {
        sort_numbers(side[s], used);
        c.median[s] = stats_median(side[s], used);
    }
    judge(&c, threshold, threads, stretch);
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

/* CPU time per call of all samples; returns the least wall time over CPU time. */
static double cpu_of(const struct sample *s, int n, double *per_call)
{
    double stretch = INFINITY;

    for (int i = 0; i < n; i++) {
        per_call[i] = s[i].cpu_ns / s[i].calls;
        stretch = fmin(stretch, s[i].wall_ns / s[i].cpu_ns);
    }
    return stretch;
}

/* d between two sorted sides. `count` is work space for either. */
static struct interval between(double *const sorted[SIDES], const int used[SIDES], bool few,
                               uint64_t seed, double *count)
{
    const uint64_t stream[SIDES] = {rng_stream("verdict.before"), rng_stream("verdict.after")};
    const double mid =
        log(stats_median(sorted[AFTER], used[AFTER]) / stats_median(sorted[BEFORE], used[BEFORE]));
    double d[BOOTSTRAP_RESAMPLES];

    if (few)
        return (struct interval){log(sorted[AFTER][0] / sorted[BEFORE][used[BEFORE] - 1]), mid,
                                 log(sorted[AFTER][used[AFTER] - 1] / sorted[BEFORE][0])};
    for (int r = 0; r < BOOTSTRAP_RESAMPLES; r++)
        d[r] = log(resampled_median(sorted[AFTER], used[AFTER], seed, stream[AFTER], r, count) /
                   resampled_median(sorted[BEFORE], used[BEFORE], seed, stream[BEFORE], r, count));
    sort_numbers(d, BOOTSTRAP_RESAMPLES);
    return (struct interval){stats_quantile(d, BOOTSTRAP_RESAMPLES, 0.025), mid,
                             stats_quantile(d, BOOTSTRAP_RESAMPLES, 0.975)};
}

struct change change_of_samples(const struct sample *before, int n_before,
                                const struct sample *after, int n_after, int threads,
                                double threshold, uint64_t seed, double *work)
{
    const struct sample *const samples[SIDES] = {before, after};
    const int n[SIDES] = {n_before, n_after};
    double *const sorted[SIDES] = {work, work + n_before}, *count = work + n_before + n_after;
    struct change c = {.n = n_before + n_after, .basis = BASIS_MOMENTS};
    double stretch[SIDES] = {1, 1};
    int used[SIDES];
    bool disturbed = false;

    c.log = (struct interval){NAN, NAN, NAN};
    for (int s = 0; s < SIDES; s++) {
        bool noisy;
        used[s] = stats_usable(samples[s], n[s], sorted[s], &noisy);
        disturbed = disturbed || noisy;
        for (int i = 0; i < n[s]; i++)
            c.disturbed += samples[s][i].disturbed;
    }
    if (disturbed)
        c.basis = BASIS_MOMENTS_CPU;
    for (int s = 0; s < SIDES; s++) {
        if (c.basis == BASIS_MOMENTS_CPU)
            stretch[s] = cpu_of(samples[s], used[s] = n[s], sorted[s]);
        sort_numbers(sorted[s], used[s]);
        c.median[s] = stats_median(sorted[s], used[s]);
        c.few = c.few || used[s] < INTERVAL_SAMPLES;
    }
    if (used[BEFORE] >= 3 && used[AFTER] >= 3 && sorted[BEFORE][0] > 0 && sorted[AFTER][0] > 0 &&
        !isnan(c.median[BEFORE]) && !isnan(c.median[AFTER]))
        c.log = between(sorted, used, c.few, seed, count);
    if (!c.few) {
        const bool cpu = c.basis == BASIS_MOMENTS_CPU;
        const struct launches l[SIDES] = {launches_of_samples(before, n_before, cpu, count),
                                          launches_of_samples(after, n_after, cpu, count)};
        c.log = launches_difference(c.log, &l[BEFORE], &l[AFTER]);
    }
    judge(&c, threshold, threads, stretch);
    return c;
}

/* ---- without samples ---------------------------------------------------------------------- */

struct change change_of_intervals(struct interval before, struct interval after, bool noisy,
                                  double threshold)
{
    const double d = log(after.mid / before.mid), a = log(before.high / before.low) / 2,
                 b = log(after.high / after.low) / 2, half = sqrt(a * a + b * b);

    struct change c = {
        .log = {d - half, d, d + half},
        .median = {before.mid, after.mid},
        .basis = BASIS_MOMENTS,
        .noisy = noisy,
    };
    judge(&c, threshold, 1, NULL);
    return c;
}

/* ---- over changes ------------------------------------------------------------------------- */

struct change change_mean(const struct change *c, int n, double threshold)
{
    struct change m = {.log = {NAN, NAN, NAN}, .median = {NAN, NAN}};
    double mid = 0, below = 0, above = 0; /* squares of the distances to the ends */

    for (int i = 0; i < n; i++) {
        const struct interval x = c[i].log;
        if (!(isfinite(x.low) && isfinite(x.mid) && isfinite(x.high)))
            continue;
        mid += x.mid;
        below += (x.mid - x.low) * (x.mid - x.low);
        above += (x.high - x.mid) * (x.high - x.mid);
        m.doubt += c[i].doubt;
        m.disturbed += c[i].disturbed;
        m.noisy = m.noisy || c[i].noisy;
        m.few = m.few || c[i].few;
        if (change_by_cpu(&c[i]))
            m.basis = c[i].basis;
        m.n++;
    }
    if (m.n > 0) {
        mid /= m.n;
        m.doubt /= m.n;
        m.log = (struct interval){mid - sqrt(below) / m.n, mid, mid + sqrt(above) / m.n};
    }
    m.verdict = verdict_of(m.log, threshold, m.doubt);
    return m;
}

double change_noise(const struct change *identical)
{
    return expm1((identical->log.high - identical->log.low) / 2);
}
