/* SPDX-License-Identifier: MIT
 *
 * The interval of a score: its definition by hand, and its width and coverage on simulated
 * segments. The simulations draw from fixed seeds, so they give the same counts on every machine.
 */
#include "harness/learn/score/score.h"
#include "harness/learn/source/window_sums.h"

#include "tests/support/failure.h"

enum { MOST = 128 };

/* nll, tokens and interval of these segments. */
static struct report score_of(const double *sum, const int *n, int segments)
{
    struct report r = {.segments = segments};
    struct window_sums sums = {0};

    for (int i = 0; i < segments; i++) {
        r.nll += sum[i];
        r.tokens_counted += n[i];
        cr_assert_eq(window_sums_add(&sums, sum[i], n[i], &failure), OK);
    }
    r.nll /= r.tokens_counted;
    window_sums_interval(&sums, r.nll, r.tokens_counted, &r.nll_low, &r.nll_high);
    window_sums_free(&sums);
    return r;
}

/* Ten tokens with a mean of 2; their segments are -2, 4 and -2 nats away from what it predicts:
 * squares 24, times 3/2 for the degree of freedom that the mean takes, root 6. */
Test(score, interval_by_hand)
{
    const double sum[] = {6, 12, 2};
    const int n[] = {4, 4, 2};
    const struct report r = score_of(sum, n, 3);

    NUMBERS({r.nll, 2}, {r.nll_low, 2 - 1.959964 * 6 / 10, 1e-12},
            {r.nll_high, 2 + 1.959964 * 6 / 10, 1e-12});
}

Test(score, one_segment_has_no_interval)
{
    const struct report r = score_of((const double[]){12}, (const int[]){4}, 1);

    cr_expect(r.nll == 3 && isnan(r.nll_low) && isnan(r.nll_high));
}

/* How many of TRIALS texts have a true mean below and above their interval. Each text is 100
 * segments of 128 tokens, the last one shorter; a token has mean 1.5 and deviation 2, a segment of
 * n the sum of n of them. */
enum { TRIALS = 2000 };
static void simulate(int *below, int *above, double *half_width)
{
    enum { SEGMENTS = 100, L = 128, LAST = 40 };
    const double mean = 1.5, deviation = 2;
    double sum[MOST];
    float z[MOST];
    int n[MOST];

    *below = *above = 0;
    *half_width = 0;
    for (int t = 0; t < TRIALS; t++) {
        rng_normal(z, SEGMENTS, 21, (uint64_t)t, 0, 1);
        for (int i = 0; i < SEGMENTS; i++) {
            n[i] = i < SEGMENTS - 1 ? L : LAST;
            sum[i] = n[i] * mean + sqrt(n[i]) * deviation * (double)z[i];
        }
        const struct report r = score_of(sum, n, SEGMENTS);
        *below += mean < r.nll_low;
        *above += mean > r.nll_high;
        *half_width += (r.nll_high - r.nll_low) / 2 / TRIALS;
    }
    *half_width /= 1.959964 * deviation / sqrt(L * (SEGMENTS - 1) + LAST);
}

/* Each end misses 2.5 % of 2000 trials: 50 with a deviation of 7, of which four are allowed. The
 * width is known: the square root of a sample variance of 100 segments is a quarter of a percent
 * too narrow, and its mean over the trials is exact to 0.2 %. */
Test(score, interval_has_its_width_and_coverage)
{
    int below, above;
    double half_width;

    simulate(&below, &above, &half_width);
    cr_expect(abs(below - 50) <= 28, "%d of %d texts lie below, seed 21", below, TRIALS);
    cr_expect(abs(above - 50) <= 28, "%d of %d texts lie above, seed 21", above, TRIALS);
    cr_expect(half_width > 0.985 && half_width < 1.01, "%g of its width, seed 21", half_width);
}
