/* SPDX-License-Identifier: MIT
 *
 * Several launches of one case: how much a launch differs from the next, and an interval that
 * counts it. Layout of memory, address randomisation and physical pages act on a whole launch, so
 * the blocks of one launch do not tell what another will measure. And the digest of one row's
 * samples, over its launches. Pure functions. */
#pragma once

#include "harness/cli/options.h" /* LAUNCHES_MOST */
#include "welch.h"

/* One value for each launch, such as the logarithm of its median. */
struct launches {
    int n;
    double x[LAUNCHES_MOST];
};

/* Add the median of v[0..n), which is sorted in place; nothing for n = 0. */
void launches_add(struct launches *l, double *v, int n);

/* Of the samples that stats_usable keeps: of each launch the logarithm of its median, by wall or
 * CPU time. work [n]. */
struct launches launches_of_samples(const struct sample *s, int n, bool cpu, double *work);

/* `inside`, the interval of all blocks, widened to what the launches tell: the mean of x with its
 * interval of Student's t with n - 1 degrees of freedom, which holds the mean of all launches in
 * 95 % of all cases if x is normal. Blocks inside a launch add to the spread of x, so they are
 * counted, too. From fewer than two launches it is `inside`. A bootstrap would be too narrow: three
 * launches, resampled, spread by sqrt(2/3) of their own deviation, and a normal quantile of 1.96
 * stands for a t of 4.3. */
struct interval launches_interval(struct interval inside, const struct launches *l);

/* The same for `inside` = a difference after - before of two sides with launches of their own, by
 * Welch's interval; `inside` unless both have two. */
struct interval launches_difference(struct interval inside, const struct launches *before,
                                    const struct launches *after);

/* Standard deviation of x; NAN below two launches. */
double launches_sd(const struct launches *l);

/* How much launches of a run's cases differ: the sum of squares of their deviations, and its degrees of freedom. */
struct launch_noise {
    double squares;
    int freedom;
};
void launch_noise_add(struct launch_noise *to, double sd, int launches);

/* Half of the 95 % interval, as a log, that `launches` launches of a case would have if they differed as those do; 0
 * where nothing is known. Three launches that happen to agree tell less than those of all cases. */
double launch_noise_half(const struct launch_noise *n, int launches);

/* How often a case is started: --launches, or three times where --max-time gives each launch a
 * third of a second or more. A case inside this process has one launch. */
int case_launches(const struct options *o);

/* The digest of one row, ns per call. Without samples everything but the counts is NAN. */
struct summary {
    int samples, disturbed; /* all samples, and those that were preempted */
    int used;               /* samples behind the statistics below */
    bool noisy;             /* disturbed ones had to be used: row marked ~, status_detail "noisy" */
    double min, median, p90, p99, max, mean, stddev, mad;
    double ci_low, ci_high; /* 95 % interval of the median, over launches if there are several; NAN
                             * below INTERVAL_SAMPLES */
    double noise_pct;       /* half of the interval that blocks alone have, launches apart */
    int launches;           /* behind them */
    double between_pct;     /* standard deviation of their medians; NAN below two */
    double cpu_median;      /* thread CPU time */
    double drift_pct;
    int64_t switches; /* involuntary, of all samples */
};
enum { SUMMARY_WORK = 3 }; /* doubles of work per sample */
struct summary summarize(const struct sample *s, int n, double *work);
