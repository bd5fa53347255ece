/* SPDX-License-Identifier: MIT
 *
 * Steps by circular binary segmentation (Olshen et al. 2004), with Student's t. */
#include "levels.h"

static const double LEVEL = 0.05;

enum { SHORTEST = 2 }; /* values of a level between two others: one is an outlier */

int level_places(int n) { return n < STEP_VALUES ? 0 : 1 + (n - 1) * (n - 2) / 2; }

/* x[first..end) without x[from..to). */
static struct group_stats around(const double *x, int first, int from, int to, int end)
{
    struct group_stats g = {.n = end - first - (to - from)};
    double sum = 0;

    for (int i = first; i < end; i++)
        g.mean += i >= from && i < to ? 0 : x[i] / g.n;
    for (int i = first; i < end; i++)
        sum += i >= from && i < to ? 0 : (x[i] - g.mean) * (x[i] - g.mean);
    g.sd = g.n < 2 ? NAN : sqrt(sum / (g.n - 1));
    return g;
}

/* b - a with one variance for both, which n_a + n_b - 2 degrees of freedom tell. */
static struct welch student(struct group_stats a, struct group_stats b)
{
    const struct group_stats both[] = {a, b};
    const double diff = b.mean - a.mean, sd = pooled_sd(both, 2) * sqrt(1.0 / a.n + 1.0 / b.n);
    struct welch w = {.diff = {NAN, diff, NAN}, .df = a.n + b.n - 2, .p = NAN};

    if (w.df < 1 || isnan(diff))
        return w;
    const double half = student_quantile(LEVEL, w.df) * sd;
    w.diff.low = diff - half;
    w.diff.high = diff + half;
    w.p = sd > 0 ? student_two_sided(diff / sd, w.df) : diff == 0 ? 1 : 0;
    return w;
}

/* The part x[from..to) of x[first..end) that differs most from the rest, if it does. */
struct part {
    int from, to;
    double p;
};

static struct part find_part(const double *x, int first, int end, int tests)
{
    struct part best = {.p = INFINITY};

    for (int i = first + 1; i < end; i++) /* x[first..i) is the rest of x[i..end) */
        for (int k = i + 1; k <= end && end - first >= STEP_VALUES; k++) {
            if (k < end && k - i < SHORTEST)
                continue;
            const struct welch w = student(around(x, first, i, k, end), group_stats(x + i, k - i));
            if (w.p < best.p)
                best = (struct part){i, k, w.p};
        }
    best.p = fmin(1, best.p * tests);
    return best;
}

/* Make out[at] a step, and move those behind it. */
static void insert(struct level_step *out, int at, int *n, int value, double p)
{
    for (int i = (*n)++; i > at; i--)
        out[i] = out[i - 1];
    out[at] = (struct level_step){.at = value, .p = p};
}

int level_steps(const double *x, int n, int tests, struct level_step *out)
{
    int steps = 0, first = 0;

    for (int next = 0; first < n;) { /* out[next] is the first step after `first` */
        const int end = next < steps ? out[next].at : n;
        const struct part part = find_part(x, first, end, tests);
        if (!(part.p < LEVEL)) {
            first = end;
            next++;
            continue;
        }
        if (part.to < end)
            insert(out, next, &steps, part.to, part.p);
        insert(out, next, &steps, part.from, part.p);
    }
    for (int i = 0; i < steps; i++) {
        const int begin = i > 0 ? out[i - 1].at : 0, end = i + 1 < steps ? out[i + 1].at : n;
        struct level_step *const s = &out[i];
        s->before = s->at - begin;
        s->after = end - s->at;
        s->diff = student(group_stats(x + begin, s->before), group_stats(x + s->at, s->after)).diff;
    }
    return steps;
}
