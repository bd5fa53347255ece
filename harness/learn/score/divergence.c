/* SPDX-License-Identifier: MIT
 *
 * The Kullback-Leibler divergences of a text, kept a token each, for their mean and quantile. */
#include "divergence.h"

#include "harness/measure/stats.h"
#include "variants/base/loops.h"

enum status divergence_room(struct divergence *d, size_t more, struct err *e)
{
    if (d->n + more <= d->room)
        return OK;
    const size_t room = 2 * d->room > d->n + more ? 2 * d->room : d->n + more;
    double *const grown = realloc(d->kl, room * sizeof(*grown));
    if (!grown)
        return fail(e, E_NOMEM, "no memory for the divergences of %zu tokens", room);
    d->kl = grown;
    d->room = room;
    return OK;
}

/* ln sum exp x, whose largest is x[most]. */
static double log_sum(const float *x, int V, int most)
{
    double sum = 0;

    for (int i = 0; i < V; i++)
        sum += exp((double)x[i] - (double)x[most]);
    return (double)x[most] + log(sum);
}

void divergence_add(struct divergence *d, const float *p, const float *q, int rows, int V,
                    int threads)
{
    size_t same = 0;

    CHECK(d->n + (size_t)rows <= d->room);
#pragma omp parallel for num_threads(threads) reduction(+ : same)
    for (int r = 0; r < rows; r++) {
        const float *const x = p + (ptrdiff_t)r * V, *const y = q + (ptrdiff_t)r * V;
        const int most_x = largest_at(x, V), most_y = largest_at(y, V);
        const double sum_x = log_sum(x, V, most_x), sum_y = log_sum(y, V, most_y);
        double kl = 0;
        for (int i = 0; i < V; i++) {
            const double ln_p = (double)x[i] - sum_x, ln_q = (double)y[i] - sum_y;
            kl += ln_p > -INFINITY ? exp(ln_p) * (ln_p - ln_q) : 0; /* 0 ln 0 = 0 */
        }
        d->kl[d->n + (size_t)r] = kl;
        same += most_x == most_y;
    }
    d->n += (size_t)rows;
    d->same += same;
}

struct divergence_means divergence_means(struct divergence *d)
{
    double sum = 0;

    if (d->n == 0)
        return (struct divergence_means){NAN, NAN, NAN};
    sort_numbers(d->kl, (ptrdiff_t)d->n);
    for (size_t i = 0; i < d->n; i++)
        sum += d->kl[i];
    return (struct divergence_means){.kl = sum / (double)d->n,
                                     .kl_p99 = stats_quantile(d->kl, (int)d->n, 0.99),
                                     .same_pct = 100 * (double)d->same / (double)d->n};
}

void divergence_free(struct divergence *d) { free(d->kl); }
