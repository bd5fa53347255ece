/* SPDX-License-Identifier: MIT
 *
 * The probabilities of the reference attention, handed to a watcher: what heads attend to is
 * read where it is computed, not computed again. */
#include "variants/backends/watch.h"

#include "ref.h"

/* Weights that `weigh` made add up to any number: what a query attends to is their shares. */
static void share(double *p, int n)
{
    double sum = 0;

    for (int j = 0; j < n; j++)
        sum += p[j];
    for (int j = 0; sum > 0 && j < n; j++)
        p[j] /= sum;
}

size_t attn_probabilities_work(const struct attn *a) { return ref_row_doubles(a); }

void attn_probabilities(const struct engine *g, const struct attn_place *at, const struct attn *a,
                        double *p, double *work)
{
    const int heads = attn_mixes(a) ? a->H : 1;
    const ptrdiff_t ld = ref_ld(a);

    const size_t all = (size_t)a->H * (size_t)a->L * (size_t)ld;
    if (at->p) {
        memcpy(p, at->p, sizeof(*p) * all);
        return;
    }
    memset(p, 0, sizeof(*p) * all);
    for (int h = 0; h < a->H; h += heads)
        for (int i = 0; i < a->L; i++) {
            const struct ref_row row = ref_row_at(a, h, work);
            if (g->wanted && !g->wanted[i])
                continue;
            ref_probabilities(a, 0, i, &row);
            for (int x = 0; x < row.heads; x++) {
                double *const to = p + ((ptrdiff_t)(h + x) * a->L + i) * ld;
                for (struct range r = {0}; ref_next(a, h, heads, i, &r);)
                    memcpy(to + r.from, row.p + x * ld + r.from,
                           sizeof(*p) * (size_t)(r.to - r.from));
                if (a->weigh)
                    share(to, (int)ld);
            }
        }
}

void engine_watch(struct engine *g, const struct attn_watch *watch)
{
    g->attn = backend_ref.attn;
    g->impl = NULL;
    g->watch = watch;
}
