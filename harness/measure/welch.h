/* SPDX-License-Identifier: MIT
 *
 * Differences of two means from few values each, with unequal variances, and the correction for
 * asking often. Pure functions. A number that is undefined (too few values, a NaN among them) is
 * NAN. */
#pragma once

#include "stats.h"

/* Values of one side: their number, mean and standard deviation (divisor n-1). */
struct group_stats {
    int n;
    double mean, sd;
};
struct group_stats group_stats(const double *x, int n);

/* Student's t with `df` degrees of freedom, which need not be whole: the probability that |T| is
 * above |t|, and its inverse, the t that |T| exceeds with probability p in (0, 1). By the
 * regularised incomplete beta function (NIST DLMF 8.17). */
double student_two_sided(double t, double df);
double student_quantile(double p, double df);

/* The mean with Student's 95 % interval; below two values it has none. */
struct interval mean_interval(struct group_stats g);

/* The share k / n of independent trials that succeed, with its exact 95 % interval (Clopper and
 * Pearson 1934), by the same function. n > 0. */
struct interval share_interval(int k, int n);

/* mean(b) - mean(a) with its 95 % interval and the two-sided p of Welch 1947, with the degrees of
 * freedom of Welch and Satterthwaite. Two values on either side are the least. Where neither side
 * varies, the interval has no width and p is 0, or 1 for equal means. */
struct welch {
    struct interval diff;
    double df, p, error; /* `error`: of diff.mid, one standard deviation */
};
struct welch welch(struct group_stats a, struct group_stats b);

/* The same of any difference with a standard error of `df` degrees of freedom. */
struct welch difference(double diff, double error, double df);

/* The smallest true difference that, with this error, four of five such studies show, of `tested`
 * comparisons: an observed one of it has p below 0.05 however Holm orders it, and an interval beyond `effect`. */
double least_shown(double error, double df, int tested, double effect);

/* Of k groups of m values each, x[s k + i] being the s-th of group i: p of Cochran 1941 that one varies more than
 * the rest, and the standard deviation of what is left without the means of groups and of s. Levene's test would be
 * the usual one; of three values its size is far off: of 125 equal groups it rejects all tables by means, none by
 * medians. */
double cochran(const double *x, int k, int m);
double two_way_sd(const double *x, int k, int m);

/* Benjamini and Hochberg 1995: p[i] becomes the smallest share of false rejections at which its hypothesis is
 * rejected. NANs are no hypotheses. work [n]. */
void benjamini_hochberg(double *p, int n, double *work);

/* Holm 1979: p[i] becomes the smallest level at which its hypothesis is rejected while the chance
 * of any false rejection among all n stays below that level. NANs are no hypotheses. work [n]. */
void holm(double *p, int n, double *work);

/* One standard deviation from several groups: the root of the mean variance by degrees of freedom.
 * Groups of fewer than two values say nothing. */
double pooled_sd(const struct group_stats *g, int n);
