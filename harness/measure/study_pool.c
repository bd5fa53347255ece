/* SPDX-License-Identifier: MIT
 *
 * Pairs and pools. */
#include "study_verdict.h"

/* What a seed gave; NAN: the entry does not have it. */
static double value_of(const struct study_entry *e, int64_t seed)
{
    for (int i = 0; i < e->test.n; i++)
        if (e->seed[i] == seed)
            return e->x[i];
    return NAN;
}

/* How many seeds both have. */
static int shared(const struct study_entry *a, const struct study_entry *b)
{
    int n = 0;

    for (int i = 0; i < a->test.n; i++)
        n += !isnan(value_of(b, a->seed[i]));
    return n;
}

/* x[s k + i], of the *k entries in the pool and the seeds that all of them have; returns their number. */
static int common_seeds(const struct study_entry *e, int n, const bool *in, double *x, int *k)
{
    int first = 0, m = 0;

    while (first < n && !in[first])
        first++;
    for (int s = 0; first < n && s < e[first].test.n; s++) {
        *k = 0;
        for (int i = first; i < n; i++)
            if (in[i])
                x[m + (*k)++] = value_of(&e[i], e[first].seed[s]);
        if (!isnan(stats_mean(x + m, *k)))
            m += *k;
    }
    return m > 0 ? m / *k : 0;
}

struct study_pool study_pool_make(const struct study_entry *e, int n)
{
    struct study_pool p = {NAN, NAN, need_room((size_t)n + 1, sizeof(*p.in))};
    const double alike = 0.2; /* p: rather their own variance than a wrong one */
    int values = 0, k = 0;

    for (int i = 0, first = -1; i < n; i++) {
        const bool whole = e[i].lost == 0 && e[i].test.n >= STUDY_LEAST_SEEDS;
        first = first < 0 && whole ? i : first;
        p.in[i] = whole && shared(&e[i], &e[first]) >= STUDY_LEAST_SEEDS;
        values += e[i].test.n;
    }
    double *const x = need_room((size_t)values + (size_t)n + 1, sizeof(*x));
    const int m = common_seeds(e, n, p.in, x, &k);
    if (k > 1 && m >= STUDY_LEAST_SEEDS && cochran(x, k, m) >= alike) {
        p.sd = two_way_sd(x, k, m);
        p.df = (k - 1) * (m - 1);
    }
    free(x);
    return p;
}

struct welch study_difference(const struct study_entry *e, const struct study_entry *b, bool pooled,
                              const struct study_pool *p)
{
    double *const d = need_room((size_t)e->test.n + 1, sizeof(*d));
    int n = 0;

    for (int i = 0; i < e->test.n; i++) {
        d[n] = e->x[i] - value_of(b, e->seed[i]);
        n += !isnan(d[n]);
    }
    const struct group_stats pairs = group_stats(d, n);
    free(d);
    if (n < STUDY_LEAST_SEEDS)
        return welch(b->test, e->test);
    return pooled && isfinite(p->sd) ? difference(pairs.mean, p->sd * sqrt(2.0 / n), p->df)
                                     : difference(pairs.mean, pairs.sd / sqrt(n), n - 1);
}
