/* SPDX-License-Identifier: MIT
 *
 * The reference attention, which hands out its probabilities. */
#include "variants/backends/watch.h"

#include "ref.h"

#include <string.h>

static size_t probabilities(const struct attn *a)
{
    return (size_t)a->H * (size_t)a->L * (size_t)ref_ld(a);
}

static bool accepts_all(const struct attn *a, const char **why_not)
{
    (void)a, (void)why_not;
    return true;
}

static struct attn_need need(const struct attn *a, int threads)
{
    struct attn_need n = attn_ref.need(a, threads);

    n.scratch_bytes += sizeof(double) * (probabilities(a) + ref_row_doubles(a));
    return n;
}

/* p [H,L,K + sinks] of sequence b. */
static void fill(const struct engine *g, const struct attn *a, int b, double *p, double *work)
{
    const int heads = attn_mixes(a) ? a->H : 1;
    const ptrdiff_t ld = ref_ld(a);

    memset(p, 0, sizeof(*p) * probabilities(a));
    for (int h = 0; h < a->H; h += heads)
        for (int i = 0; i < a->L; i++) {
            const struct ref_row row = ref_row_at(a, h, work);
            if (g->wanted && !g->wanted[(ptrdiff_t)b * a->L + i])
                continue;
            ref_probabilities(a, b, i, &row);
            for (int x = 0; x < row.heads; x++)
                for (struct range r = {0}; ref_next(a, h, heads, i, &r);)
                    memcpy(p + ((ptrdiff_t)(h + x) * a->L + i) * ld + r.from,
                           row.p + x * ld + r.from, sizeof(*p) * (size_t)(r.to - r.from));
        }
}

static void forward(const struct engine *g, const struct attn *a, void *scratch)
{
    double *const work = scratch, *const p = work + ref_row_doubles(a);

    attn_ref.forward(g, a, scratch);
    for (int b = 0; b < a->B; b++) {
        fill(g, a, b, p, work);
        g->watch->see(g->watch->arg, a, b, p);
    }
}

void engine_watch(struct engine *g, const struct attn_watch *watch)
{
    static const struct attn_impl watched = {
        .name = "ref", .accepts = accepts_all, .need = need, .forward = forward};
    static const struct attn_impl *const list[] = {&watched, NULL};

    g->attn = list;
    g->impl = NULL;
    g->watch = watch;
}
