/* SPDX-License-Identifier: MIT
 *
 * The exact bootstrap distribution of a median, for tests of its intervals. */
#pragma once

#include <criterion/criterion.h>
#include <math.h>

/* P(a resample's median is among the k smallest of n values), n odd: at least (n+1)/2 of n draws
 * fall there, each with probability k/n. */
static inline double median_cdf(int n, int k)
{
    const double p = (double)k / n;
    double sum = 0;

    for (int hits = (n + 1) / 2; hits <= n; hits++)
        sum += exp(lgamma(n + 1.0) - lgamma(hits + 1.0) - lgamma(n - hits + 1.0)) * pow(p, hits) *
               pow(1 - p, n - hits);
    return sum;
}

/* Are low and high 2.5 and 97.5 % of the medians of resamples of 1, 2, ..., n (so that a value is
 * its rank)? 1000 resamples estimate a tail of 2.5 % to about 0.5 % (one standard deviation); four
 * of them must bracket it. */
static inline void expect_ends_of_ranks(int n, double low, double high)
{
    const double below = median_cdf(n, (int)ceil(low) - 1), upto = median_cdf(n, (int)ceil(low));
    const double before = median_cdf(n, (int)floor(high) - 1);
    const double not_above = median_cdf(n, (int)floor(high));

    cr_expect(below < 0.045 && upto > 0.005, "n=%d low=%g: (%g, %g]", n, low, below, upto);
    cr_expect(before < 0.995 && not_above > 0.955, "n=%d high=%g: (%g, %g]", n, high, before,
              not_above);
}
