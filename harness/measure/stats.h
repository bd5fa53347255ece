/* SPDX-License-Identifier: MIT
 *
 * Statistics as pure functions of doubles, and which samples of a row count.
 *
 * Nothing here allocates: the caller passes work space as `work`. If a number is undefined (no
 * values, too few of them, a NaN among them) the result is NAN, which the tables write as an empty
 * field. "sorted" means ascending as sort_numbers leaves it. */
#pragma once

#include "harness/table/remarks.h"
#include "harness/worker/sample.h"

#include "variants/base/sort.h"

/* Fewest samples for a percentile. */
enum { P90_SAMPLES = 64, P99_SAMPLES = 662 };

double stats_median(const double *sorted, int n);

/* Quantile p in [0, 1], type 7 of Hyndman and Fan 1996 (the default of R and NumPy): linear
 * between the order statistics around (n-1) p. */
double stats_quantile(const double *sorted, int n, double p);

double stats_p90(const double *sorted, int n); /* NAN below P90_SAMPLES */
double stats_p99(const double *sorted, int n); /* NAN below P99_SAMPLES */

double stats_mean(const double *x, int n);
double stats_stddev(const double *x, int n); /* divisor n-1; NAN below two values */

/* Median absolute deviation from the median, raw: not multiplied by 1.4826. work [n]. */
double stats_mad(const double *sorted, int n, double *work);

/* 100 * (median of the second half / median of the first half - 1), x in the order of time; the
 * middle one of an odd number belongs to neither. NAN below two values. work [n]. */
double stats_drift_pct(const double *x, int n, double *work);

/* An estimate between the ends of its 95 % interval. */
struct interval {
    double low, mid, high;
};

/* The median and the narrowest pair of order statistics, equally far from both ends, that holds the
 * true median with a probability of 95 % or more, whatever the distribution: the k+1 smallest and
 * the k+1 largest, where P(B <= k) <= 2.5 % for B of n fair coins. Below INTERVAL_SAMPLES there is
 * none: low and high are NAN. Autocorrelated samples make the interval too narrow. */
struct interval stats_median_interval(const double *sorted, int n);

/* The median and the whole range, which is no interval of 95 %; NAN below three values. */
struct interval stats_range(const double *sorted, int n);

/* A share of n independent yes or no, and its interval (Wilson 1927, "Probable Inference"), which has a
 * width where all are alike, too. n is 1 or more. */
struct interval stats_share(double share, double n);

/* The median over pairs of ln(after[i] / before[i]) with its interval, so that common disturbances
 * cancel; below INTERVAL_SAMPLES with the range. NAN unless every value is above 0. work [n]. */
struct interval stats_log_ratio(const double *after, const double *before, int n, double *work);

/* Disturbed samples are left out of the statistics only while at least half of the samples, and at
 * least INTERVAL_SAMPLES, remain; otherwise all count and the row is noisy. */
bool stats_may_leave_out(int n, int disturbed);

/* per_call [n] = wall_ns / calls of the samples that count, in their order; returns their number.
 * `noisy` may be NULL. */
int stats_usable(const struct sample *s, int n, double *per_call, bool *noisy);

/* How many were preempted. */
int stats_disturbed(const struct sample *s, int n);
