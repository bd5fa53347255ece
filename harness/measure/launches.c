/* SPDX-License-Identifier: MIT
 *
 * Intervals over launches. */
#include "launches.h"

#include <math.h>

void launches_add(struct launches *l, double *v, int n)
{
    if (n < 1 || l->n == LAUNCHES_MOST)
        return;
    stats_sort(v, n);
    l->x[l->n++] = stats_median(v, n);
}

static int disturbed_samples(const struct sample *s, int n)
{
    int disturbed = 0;

    for (int i = 0; i < n; i++)
        disturbed += s[i].disturbed;
    return disturbed;
}

struct launches launches_of_samples(const struct sample *s, int n, bool cpu, double *work)
{
    const bool leave_out = !cpu && stats_may_leave_out(n, disturbed_samples(s, n));
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
