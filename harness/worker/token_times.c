/* SPDX-License-Identifier: MIT
 *
 * Times of single tokens: their median and 99th percentile. */
#include "token_times.h"

#include "harness/util/grow.h"

#include <math.h>
#include <stdlib.h>

enum status token_times_add(struct token_times *t, const struct job *j, struct err *e)
{
    if (!j->n_marks)
        return OK;
    t->first_ns += (double)(j->mark_ns[1] - j->mark_ns[0]);
    t->runs++;
    for (int i = 2; i < j->n_marks; i++) {
        const enum status st = GROW(t->ns, t->n, e);
        if (st != OK)
            return st;
        t->ns[t->n++] = (double)(j->mark_ns[i] - j->mark_ns[i - 1]);
    }
    return OK;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The smallest that a share q of them does not exceed. */
static double quantile(const struct token_times *t, double q)
{
    return t->n > 0 ? t->ns[(size_t)fmax(0, ceil(q * (double)t->n) - 1)] : 0;
}

void token_times_put(struct token_times *t, struct sample *s)
{
    if (t->runs > 0)
        s->first_ns = t->first_ns / t->runs;
    if (t->n > 0)
        qsort(t->ns, t->n, sizeof(*t->ns), by_size);
    s->token_ns = quantile(t, 0.5);
    s->token_p99_ns = quantile(t, 0.99);
    t->n = 0;
    t->first_ns = 0;
    t->runs = 0;
}

void token_times_free(struct token_times *t)
{
    free(t->ns);
    *t = (struct token_times){0};
}
