/* SPDX-License-Identifier: MIT
 *
 * Intervals over launches, and the digest of a row. */
#include "launches.h"

void launches_add(struct launches *l, double *v, int n)
{
    if (n < 1 || l->n == LAUNCHES_MOST)
        return;
    sort_numbers(v, n);
    l->x[l->n++] = stats_median(v, n);
}

struct launches launches_of_samples(const struct sample *s, int n, bool cpu, double *work)
{
    const bool leave_out = !cpu && stats_may_leave_out(n, stats_disturbed(s, n));
    struct launches l = {0};

    for (uint32_t k = 0; k < LAUNCHES_MOST; k++) {
        int used = 0;
        for (int i = 0; i < n; i++)
            if (s[i].launch == k && !(leave_out && s[i].disturbed))
                work[used++] = log((cpu ? s[i].cpu_ns : s[i].wall_ns) / s[i].calls);
        launches_add(&l, work, used);
    }
    return l;
}

/* What both intervals hold; `inside` if the other is not known. */
static struct interval hull(struct interval inside, double low, double high)
{
    if (!(isfinite(inside.low) && isfinite(inside.high) && isfinite(low) && isfinite(high)))
        return inside;
    return (struct interval){fmin(inside.low, low), inside.mid, fmax(inside.high, high)};
}

struct interval launches_interval(struct interval inside, const struct launches *l)
{
    const struct group_stats g = group_stats(l->x, l->n);

    if (l->n < 2)
        return inside;
    const double half = student_quantile(0.05, l->n - 1) * g.sd / sqrt(l->n);
    return hull(inside, g.mean - half, g.mean + half);
}

struct interval launches_difference(struct interval inside, const struct launches *before,
                                    const struct launches *after)
{
    if (before->n < 2 || after->n < 2)
        return inside;
    const struct interval d =
        welch(group_stats(before->x, before->n), group_stats(after->x, after->n)).diff;
    return hull(inside, d.low, d.high);
}

int case_launches(const struct options *o)
{
    const double least_s = 1;

    if (o->launches > 0)
        return o->launches;
    return o->isolate == ISOLATE_NONE || o->max_time_s < least_s ? 1 : 3;
}

double launches_sd(const struct launches *l) { return stats_stddev(l->x, l->n); }

void launch_noise_add(struct launch_noise *to, double sd, int launches)
{
    if (launches < 2 || !isfinite(sd))
        return;
    to->squares += (launches - 1) * sd * sd;
    to->freedom += launches - 1;
}

double launch_noise_half(const struct launch_noise *n, int launches)
{
    if (n->freedom < 1 || launches < 2)
        return 0;
    return student_quantile(0.05, n->freedom) * sqrt(n->squares / n->freedom / launches);
}

/* ---- the digest ---------------------------------------------------------------------------- */

static double cpu_median(const struct sample *s, int n, bool leave_out, double *work)
{
    int used = 0;

    for (int i = 0; i < n; i++)
        if (!(leave_out && s[i].disturbed))
            work[used++] = s[i].cpu_ns / s[i].calls;
    sort_numbers(work, used);
    return stats_median(work, used);
}

/* The interval of the median over all launches. */
static void put_interval(struct summary *m, struct interval ci, const struct sample *s, int n,
                         double *work)
{
    const struct launches l = launches_of_samples(s, n, false, work);
    const struct interval logs =
        launches_interval((struct interval){log(ci.low), log(ci.mid), log(ci.high)}, &l);

    m->noise_pct = 50 * (ci.high - ci.low) / ci.mid;
    m->launches = l.n;
    m->between_pct = 100 * launches_sd(&l);
    m->median = ci.mid;
    m->ci_low = l.n < 2 ? ci.low : fmin(ci.low, exp(logs.low));
    m->ci_high = l.n < 2 ? ci.high : fmax(ci.high, exp(logs.high));
}

struct summary summarize(const struct sample *s, int n, double *work)
{
    double *const sorted = work, *const in_time = work + n, *const spare = work + 2 * n;
    struct summary m = {.samples = n, .disturbed = stats_disturbed(s, n)};

    for (int i = 0; i < n; i++)
        m.switches += s[i].involuntary_switches;
    m.used = stats_usable(s, n, in_time, &m.noisy);
    memcpy(sorted, in_time, (size_t)m.used * sizeof(*sorted));
    sort_numbers(sorted, m.used);

    put_interval(&m, stats_median_interval(sorted, m.used), s, n, spare);
    m.min = stats_quantile(sorted, m.used, 0);
    m.max = stats_quantile(sorted, m.used, 1);
    m.p90 = stats_p90(sorted, m.used);
    m.p99 = stats_p99(sorted, m.used);
    m.mean = stats_mean(in_time, m.used);
    m.stddev = stats_stddev(in_time, m.used);
    m.mad = stats_mad(sorted, m.used, spare);
    m.drift_pct = stats_drift_pct(in_time, m.used, spare);
    m.cpu_median = cpu_median(s, n, stats_may_leave_out(n, m.disturbed), spare);
    return m;
}
