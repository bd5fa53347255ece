/* SPDX-License-Identifier: MIT
 *
 * Buckets of gradients.
 *
 * Numbers. A rank's gradient is the mean over its B/R sequences, by the kernels' own order of
 * summation; the ranks' are added in an order that depends on R alone, then divided by R. Against
 * one rank with B sequences only the order of additions differs: with gamma_n = n u / (1 - n u), u
 * = 2^-24, each element of the sum of T = B L products is within gamma_(T+R) sum |terms| of the
 * exact one on either side (Higham 2002, section 4.2), so both are within 2 gamma_(T+R) sum |terms|
 * of each other.
 */
#include "grad_sum.h"

#include "harness/machine/clock.h"

enum { BUCKET = 1 << 18 }; /* floats: 1 MiB, some 10 times what a network takes to answer */

static bool alone(const struct grad_sum *s) { return !s->ranks || s->ranks->count == 1; }

/* Begin the sums of parameters [from, end): neighbours in memory together. Between two there are
 * zeros, which stay zeros. */
static void begin_bucket(struct grad_sum *s, int from, int end)
{
    enum { GAP = 64 }; /* floats, at most */
    struct param *const v = s->params->v;

    for (int i = from, k; i < end; i = k) {
        for (k = i + 1; k < end && v[k].grad >= v[k - 1].grad + v[k - 1].n &&
                        v[k].grad <= v[k - 1].grad + v[k - 1].n + GAP;
             k++)
            ;
        const size_t n = (size_t)(v[k - 1].grad + v[k - 1].n - v[i].grad);
        if (!s->begun_ns)
            s->begun_ns = clock_wall_ns();
        ranks_add_begin(s->ranks, v[i].grad, n);
        s->bytes += (double)n * sizeof(float);
    }
}

static size_t floats(const struct grad_sum *s, int from, int end)
{
    size_t n = 0;

    for (int i = from; i < end; i++)
        n += s->params->v[i].n;
    return n;
}

/* Parameters from `first` on are complete. */
static void complete(void *arg, int first)
{
    struct grad_sum *const s = arg;

    if (first < s->from && (first == 0 || floats(s, first, s->from) >= BUCKET)) {
        begin_bucket(s, first, s->from);
        s->from = first;
    }
    ranks_add_poll(s->ranks);
}

void grad_sum_begin(struct grad_sum *s, struct lm *m)
{
    s->params = &m->params;
    s->from = m->params.n;
    s->begun_ns = 0;
    m->complete = alone(s) ? NULL : complete;
    m->complete_arg = s;
}

void grad_sum_end(struct grad_sum *s)
{
    if (alone(s))
        return;
    CHECK(s->from == 0);
    const int64_t start = clock_wall_ns();
    ranks_add_end(s->ranks);
    const int64_t end = clock_wall_ns();
    s->wait_ns += (double)(end - start);
    s->between_ns += (double)(end - s->begun_ns);
    s->steps++;
    const float share = 1 / (float)s->ranks->count;
    for (int i = 0; i < s->params->n; i++)
        for (size_t k = 0; k < s->params->v[i].n; k++)
            s->params->v[i].grad[k] *= share;
}
