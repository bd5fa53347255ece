/* SPDX-License-Identifier: MIT
 *
 * --shard I/N: the part of a plan that one of several machines runs, whole groups of cases that
 * are compared with each other. */
#include "plan.h"

enum status shard_read(struct shard_of *to, const char *shard, int groups, struct err *e)
{
    int end = 0;

    *to = (struct shard_of){0, 1};
    if (!shard)
        return OK;
    if (sscanf(shard, "%d/%d%n", &to->i, &to->n, &end) != 2 || shard[end] || to->i < 1 ||
        to->i > to->n)
        return fail(e, E_USAGE, "--shard \"%.40s\": not I/N  -> write 1/4 to 4/4 for four shards",
                    shard);
    to->i--;
    if (groups > 0 && to->n > groups)
        return fail(e, E_USAGE, "--shard %s: the plan has %d groups only  -> use at most %d shards",
                    shard, groups, groups);
    return OK;
}

enum status plan_keep_shard(struct plan *p, const char *shard, struct err *e)
{
    struct shard_of keep;
    int kept = 0, last = -1;

    TRY(shard_read(&keep, shard, p->n > 0 ? p->groups : 0, e));
    p->groups = 0;
    for (int k = 0; k < p->n; k++) {
        if (p->cases[k].group % keep.n != keep.i) {
            free(p->cases[k].repro);
            continue;
        }
        p->groups += p->cases[k].group != last;
        last = p->cases[k].group;
        p->cases[kept++] = p->cases[k];
    }
    p->n = kept;
    return OK;
}
