/* SPDX-License-Identifier: MIT
 *
 * Pairs of samples. */
#include "pairing.h"

struct pairing pairing_open(const struct run *before, const struct run *after)
{
    const size_t n[SIDES] = {before->samples.n + 1, after->samples.n + 1};
    const struct pairing p = {
        .sample = {need_room(n[BEFORE], sizeof(**p.sample)),
                   need_room(n[AFTER], sizeof(**p.sample))},
        .pair = need_room(n[BEFORE], sizeof(*p.pair)),
        .work = need_room(PAIRS_WORK * (n[BEFORE] + n[AFTER]), sizeof(*p.work)),
    };

    return p;
}

void pairing_close(struct pairing *p)
{
    free(p->sample[BEFORE]);
    free(p->sample[AFTER]);
    free(p->pair);
    free(p->work);
}

/* Older files do not tell: one launch. */
static int launch_of(const struct sample_row *s)
{
    return s->launch == I64_EMPTY ? 0 : (int)s->launch;
}

/* Blocks of one turn, in order of time. */
static int collect_pairs(const struct pairing *p, const struct series *a, const struct series *b)
{
    struct pair *const out = p->pair;
    int n = 0;

    for (int i = 0, k = 0; i < a->n && k < b->n;) {
        const struct sample_ref *x = &a->ref[i], *y = &b->ref[k];
        if (x->turn < y->turn) {
            i++;
        } else if (x->turn > y->turn) {
            k++;
        } else {
            const struct sample_row *s[SIDES] = {x->row, y->row};
            out[n] = (struct pair){.launch = launch_of(x->row), .disturbed = p->by_cpu};
            for (int side = 0; side < SIDES; side++) {
                out[n].wall[side] = s[side]->wall_ns / (double)s[side]->calls;
                out[n].cpu[side] = s[side]->cpu_ns / (double)s[side]->calls;
                out[n].disturbed = out[n].disturbed || s[side]->disturbed > 0;
            }
            n++;
            i++;
            k++;
        }
    }
    return n;
}

static void collect_samples(struct sample *out, const struct series *s, bool by_cpu)
{
    for (int i = 0; i < s->n; i++)
        out[i] = (struct sample){.wall_ns = s->ref[i].row->wall_ns,
                                 .cpu_ns = s->ref[i].row->cpu_ns,
                                 .calls = (uint32_t)s->ref[i].row->calls,
                                 .launch = (uint32_t)launch_of(s->ref[i].row),
                                 .disturbed = by_cpu || s->ref[i].row->disturbed > 0};
}

struct change pairing_change(const struct pairing *p, const struct series *before,
                             const struct series *after, bool inside, int threads, double threshold,
                             uint64_t seed, bool *together)
{
    enum { LEAST_PAIRS = 3 };
    const int pairs = inside ? collect_pairs(p, before, after) : 0;

    *together = pairs >= LEAST_PAIRS;
    if (*together)
        return change_of_pairs(p->pair, pairs, threads, threshold, p->work);
    collect_samples(p->sample[BEFORE], before, p->by_cpu);
    collect_samples(p->sample[AFTER], after, p->by_cpu);
    return change_of_samples(p->sample[BEFORE], before->n, p->sample[AFTER], after->n, threads,
                             threshold, seed, p->work);
}
