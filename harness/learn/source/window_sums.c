/* SPDX-License-Identifier: MIT
 *
 * Sums of windows. */
#include "window_sums.h"

#include "harness/util/grow.h"

enum status window_sums_add(struct window_sums *s, double sum, double n, struct err *e)
{
    TRY(GROW(s->sum, s->count, e));
    TRY(GROW(s->n, s->count, e));
    CHECK(s->sum && s->n);
    s->sum[s->count] = sum;
    s->n[s->count++] = (int)n;
    return OK;
}

void window_sums_interval(const struct window_sums *s, double mean, double tokens, double *low,
                          double *high)
{
    const double n = (double)s->count;
    double square = 0;

    for (size_t i = 0; i < s->count; i++) {
        const double off = s->sum[i] - s->n[i] * mean;
        square += off * off;
    }
    const double half = n > 1 ? 1.959964 * sqrt(square * n / (n - 1)) / tokens : NAN;
    *low = mean - half;
    *high = mean + half;
}

void window_sums_free(struct window_sums *s)
{
    free(s->sum);
    free(s->n);
    *s = (struct window_sums){0};
}
