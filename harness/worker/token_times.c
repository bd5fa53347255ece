/* SPDX-License-Identifier: MIT
 *
 * Times of single tokens: their median and 99th percentile. */
#include "token_times.h"
#include "variants/base/sort.h"

enum status token_times_reserve(struct token_times *t, const struct job *j, uint32_t runs,
                                struct err *e)
{
    const size_t need = j->n_marks > 2 ? (size_t)runs * (size_t)(j->n_marks - 2) : 0;

    if (need <= t->room)
        return OK;
    double *const ns = realloc(t->ns, need * sizeof(*ns));
    if (!ns)
        return fail(e, E_NOMEM, "no memory for the times of %zu tokens", need);
    t->ns = ns;
    t->room = need;
    return OK;
}

void token_times_add(struct token_times *t, const struct job *j)
{
    if (!j->n_marks)
        return;
    t->first_ns += (double)(j->mark_ns[1] - j->mark_ns[0]);
    t->runs++;
    for (int i = 2; i < j->n_marks; i++) {
        CHECK(t->n < t->room);
        t->ns[t->n++] = (double)(j->mark_ns[i] - j->mark_ns[i - 1]);
    }
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
    sort_numbers(t->ns, (ptrdiff_t)t->n);
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
