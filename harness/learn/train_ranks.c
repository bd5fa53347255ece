/* SPDX-License-Identifier: MIT
 *
 * May these ranks train together? */
#include "train_ranks.h"

#include "variants/model/drive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLACE_TEXT = 320 };

/* Does the list of CPUs, "0-3,8", have this one? */
static bool has_cpu(const char *list, int cpu)
{
    int lo, hi, used;

    for (; sscanf(list, "%d%n", &lo, &used) == 1; list += *list == ',') {
        list += used;
        hi = lo;
        if (*list == '-' && sscanf(list, "-%d%n", &hi, &used) == 1)
            list += used;
        if (cpu >= lo && cpu <= hi)
            return true;
    }
    return false;
}

static bool share_a_cpu(const char *a, const char *b)
{
    enum { CPUS = 4096 };

    for (int cpu = 0; cpu < CPUS; cpu++)
        if (has_cpu(a, cpu) && has_cpu(b, cpu))
            return true;
    return false;
}

enum status ranks_have_places(const struct ranks *r, const struct team *team, struct err *e)
{
    char mine[PLACE_TEXT] = "", *const all = calloc((size_t)r->count, PLACE_TEXT);
    enum status st = OK;

    NEED(all);
    if (gethostname(mine, 60) != 0)
        mine[0] = '\0';
    const size_t host = strlen(mine) + 1; /* the CPUs stand behind it */
    snprintf(mine + host, PLACE_TEXT - host, "%s", team->first_cpu < 0 ? "" : team->cpus);
    ranks_gather(r, mine, PLACE_TEXT, all);
    for (int i = 0; i < r->count && st == OK; i++) {
        const char *const other = all + (size_t)i * PLACE_TEXT;
        if (i != r->index && strcmp(mine, other) == 0 && share_a_cpu(mine + host, other + host))
            st = fail(e, E_USAGE,
                      "ranks %d and %d run on the same CPUs of %s (%s and %s)  -> place them with "
                      "mpirun --map-by or --bind-to, lower --threads, or use --pin none",
                      r->index, i, mine, mine + host, other + host);
    }
    free(all);
    return st;
}

enum status ranks_fit_batch(const struct options *o, const struct ranks *r, struct err *e)
{
    if (o->batch.v[0] % r->count)
        return fail(e, E_USAGE, "%d ranks do not divide --batch %d  -> use a multiple of %d",
                    r->count, o->batch.v[0], r->count);
    return OK;
}

enum status ranks_divide(const struct config *c, const struct options *o, const struct ranks *r,
                         struct err *e)
{
    const char *const undivided = drive_of(c)->undivided;

    if (undivided)
        return fail(e, E_UNSUPPORTED, "%s: %s are not divided among ranks  -> use one rank",
                    c->variant->name, undivided);
    if (o->dropout > 0 && c->ffn->by_expert)
        return fail(e, E_UNSUPPORTED,
                    "%s: --dropout draws masks expert by expert, whose rows %d ranks divide  -> "
                    "use --dropout 0, or one rank",
                    c->variant->name, r->count);
    return OK;
}
