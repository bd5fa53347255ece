/* SPDX-License-Identifier: MIT
 *
 * One case, two programs: launch, check, measure in pairs. */
#include "ab_run.h"

#include "harness/worker/reference.h"

enum { GAP_MS = 2 };

struct ab_rotation {
    struct child child[SIDES][AB_LAUNCHES];
    struct ab_run *ab_run;
    const struct bench_case *bcase;
    struct ab_pairs *ab_pairs;
};

/* ---- faults ------------------------------------------------------------------------------- */

/* End the case. An interruption ends the run, any other error only the case. */
static enum status give_up(struct ab_rotation *r, const struct ab_side *side, enum status why,
                           const struct err *what, struct err *e)
{
    struct ab_pairs *d = r->ab_pairs;

    if (why == E_INTERRUPTED || *r->ab_run->session.setup.stop)
        return fail(e, E_INTERRUPTED, "interrupted");
    /* An older program may not know an option. */
    d->status = why == E_USAGE ? ROW_SKIPPED : row_status_of(why);
    snprintf(d->detail, sizeof(d->detail), "%s %s", side->name, what->msg);
    return OK;
}

/* ---- launching ---------------------------------------------------------------------------- */

static enum status launch(struct ab_rotation *r, const struct ab_side *p, struct child *child,
                          int reference, double *bytes, struct err *e)
{
    const struct child_setup *shared = &r->ab_run->session.setup;
    const char *const words[] = {p->path, NULL};
    struct child_setup setup = *shared;
    char detail[LINE_SIZE];

    setup.launch = words;
    TRY(child_open(child, r->bcase, &setup, ROLE_COMPARE, reference, e));
    *bytes += child->report.arena_bytes;
    if (*bytes > shared->memory_bytes)
        return fail(e, E_NOMEM, "needs %s, %s free", units_bytes(*bytes).s,
                    units_bytes(shared->memory_bytes).s);
    TRY(child_place(child, e));
    return report_is_wrong(r->bcase, &child->report, detail) ? fail(e, E_WRONG, "%.600s", detail)
                                                             : OK;
}

/* Alternately, so that neither side is always the older one. */
static enum status launch_all(struct ab_rotation *r, const struct ab_side *const side[SIDES],
                              int reference, struct err *e)
{
    double bytes = 0;

    for (int k = 0; k < AB_LAUNCHES; k++)
        for (int s = 0; s < SIDES; s++) {
            struct child *child = &r->child[s][k];
            struct err why;
            const enum status st = launch(r, side[s], child, reference, &bytes, &why);
            if (child->report.arena_bytes > 0)
                r->ab_pairs->arena_bytes[s] = child->report.arena_bytes;
            if (st != OK)
                return give_up(r, side[s], st, &why, e);
        }
    return OK;
}

/* ---- pairs -------------------------------------------------------------------------------- */

/* A pair is the two sides' blocks of one round. */
static enum status keep(void *arg, int side, const struct sample *s, const struct outcome *o,
                        struct err *e)
{
    struct ab_rotation *const r = arg;
    struct ab_pairs *const d = r->ab_pairs;

    if (!s)
        return OK;
    struct pair *const p = &d->pair[s->round];
    p->wall[side] = s->wall_ns / s->calls;
    p->cpu[side] = s->cpu_ns / s->calls;
    p->disturbed = p->disturbed || s->disturbed;
    d->n = (int)s->round + 1;
    progress_tick(&r->ab_run->session.console.wait);
    return OK;
}

static enum status measure_pairs(struct ab_rotation *r, const struct ab_side *const program[SIDES],
                                 int pairs, uint64_t salt, struct err *e)
{
    const struct options *o = r->ab_run->session.opt;
    const struct schedule s = {
        .rounds = pairs,
        .block_ms = o->block_ms,
        .warmup_ms = o->warmup_ms,
        .interleave = true,
        .seed = o->seed ^ salt << 32,
        .gap_ms = GAP_MS,
        .stop = r->ab_run->session.setup.stop,
    };
    struct side side[SIDES];
    struct plain plain[SIDES];
    struct outcome out[SIDES];
    struct err why;

    for (int i = 0; i < SIDES; i++) {
        plain[i] = (struct plain){program[i]->path, s.stop};
        side[i] = (struct side){.block = plain_block, .launch = {&plain[i]}, .launches = 1};
        if (!r->bcase)
            continue;
        side[i] = (struct side){.block = child_block, .launches = AB_LAUNCHES};
        for (int k = 0; k < AB_LAUNCHES; k++)
            side[i].launch[k] = &r->child[i][k];
    }
    const enum status st = measure(side, SIDES, &s, keep, r, out, &why);
    if (st != OK)
        return give_up(r, program[BEFORE], st, &why, e);
    for (int i = 0; i < SIDES; i++)
        if (out[i].stop == STOP_FAILED)
            return give_up(r, program[i], out[i].status, &out[i].err, e);
    return OK;
}

enum status ab_pairs_run(struct ab_pairs *d, struct ab_run *l, const struct bench_case *c,
                         const struct ab_side *before, const struct ab_side *after, int reference,
                         int pairs, uint64_t salt, struct err *e)
{
    const struct ab_side *const side[SIDES] = {before, after};
    struct ab_rotation *const r = need_room(1, sizeof(*r));

    *d = (struct ab_pairs){.arena_bytes = {NAN, NAN}};
    d->pair = need_room((size_t)pairs * MAX_REPEATS, sizeof(*d->pair));
    r->ab_run = l;
    r->bcase = c;
    r->ab_pairs = d;
    for (int s = 0; s < SIDES; s++)
        for (int k = 0; k < AB_LAUNCHES; k++)
            r->child[s][k].protocol.fd = -1;
    enum status st = c ? launch_all(r, side, reference, e) : OK;
    if (st == OK && d->status == ROW_OK)
        st = measure_pairs(r, side, pairs, salt, e);
    for (int s = 0; s < SIDES; s++)
        for (int k = 0; k < AB_LAUNCHES; k++)
            child_close(&r->child[s][k]);
    free(r);
    return st;
}

void ab_pairs_free(struct ab_pairs *d)
{
    free(d->pair);
    d->pair = NULL;
}
