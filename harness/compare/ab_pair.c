/* SPDX-License-Identifier: MIT
 *
 * One cell, two programs: launch, check, warm up, pair by pair. */
#include "ab_run.h"

#include "harness/machine/clock.h"
#include "harness/util/units.h"
#include "harness/worker/reference.h"

#include "variants/base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LAUNCHES = 2,       /* processes a side */
    REPEATS = 3,        /* most pairs per pair wanted */
    PRIMED_BLOCKS = 20, /* calls longer than so many blocks are not primed */
    GAP_MS = 2,
};

struct ab_rotation {
    struct child child[SIDES][LAUNCHES];
    const struct ab_run *ab_run;
    const struct bench_case *bcase;
    struct ab_pairs *ab_pairs;
    uint32_t calls;
    bool prime;
    double call_ns; /* fastest seen in warm-up */
};

/* ---- faults ------------------------------------------------------------------------------- */

/* The duel ends here. An interruption is the run's affair, everything else the cell's. */
static enum status give_up(struct ab_rotation *r, const struct ab_side *side, enum status why,
                           const struct err *what, struct err *e)
{
    struct ab_pairs *d = r->ab_pairs;

    if (why == E_INTERRUPTED || *r->ab_run->session.setup.stop)
        return fail(e, E_INTERRUPTED, "interrupted");
    const bool cannot = why == E_NOMEM || why == E_UNSUPPORTED || why == E_USAGE;
    d->status = cannot             ? ROW_SKIPPED
                : why == E_WRONG   ? ROW_WRONG
                : why == E_TIMEOUT ? ROW_TIMEOUT
                                   : ROW_FAILED;
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
    enum status st = child_open(child, r->bcase, &setup, ROLE_COMPARE, reference, e);
    if (st != OK)
        return st;
    *bytes += child->report.arena_bytes;
    if (*bytes > shared->memory_bytes)
        return fail(e, E_NOMEM, "needs %s, %s free", units_bytes(*bytes).s,
                    units_bytes(shared->memory_bytes).s);
    st = child_place(child, e);
    if (st == OK && report_is_wrong(r->bcase, &child->report, detail))
        st = fail(e, E_WRONG, "%.600s", detail);
    return st;
}

/* Alternately, so that neither side is the older one. */
static enum status launch_all(struct ab_rotation *r, const struct ab_side *const side[SIDES],
                              int reference, struct err *e)
{
    double bytes = 0;

    for (int k = 0; k < LAUNCHES; k++)
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

/* ---- warm-up ------------------------------------------------------------------------------ */

static enum status watch(void *arg, int target, const struct sample *s, const struct outcome *o,
                         struct err *e)
{
    struct ab_rotation *r = arg;
    (void)target;
    (void)e;

    if (s)
        r->call_ns = fmin(r->call_ns, s->wall_ns / s->calls);
    if (!s && o->inner_calls > r->calls)
        r->calls = o->inner_calls; /* blocks of at least block_ms on every side */
    return OK;
}

/* measure() warms up and calibrates; its three samples are not used. */
static enum status warm_up(struct ab_rotation *r, const struct ab_side *const side[SIDES],
                           struct err *e)
{
    const struct options *o = r->ab_run->session.opt;
    const struct schedule s = {
        .max_time_s = 1e-9,
        .min_samples = 3,
        .target_ci = 1,
        .block_ms = o->block_ms,
        .warmup_ms = o->warmup_ms,
        .interleave = true,
        .seed = o->seed,
        .gap_ms = GAP_MS,
        .stop = r->ab_run->session.setup.stop,
    };
    struct target t[SIDES * LAUNCHES];
    struct outcome out[SIDES * LAUNCHES];
    struct err why;

    for (int i = 0; i < SIDES * LAUNCHES; i++)
        t[i] = (struct target){child_block, &r->child[i % SIDES][i / SIDES]};
    r->call_ns = INFINITY;
    const enum status st = measure(t, SIDES * LAUNCHES, &s, watch, r, out, &why);
    if (st != OK)
        return give_up(r, side[BEFORE], st, &why, e);
    for (int i = 0; i < SIDES * LAUNCHES; i++)
        if (out[i].stop == STOP_FAILED)
            return give_up(r, side[i % SIDES], out[i].status, &out[i].err, e);
    r->prime = r->call_ns <= PRIMED_BLOCKS * o->block_ms * 1e6;
    return OK;
}

/* ---- pairs -------------------------------------------------------------------------------- */

static enum status take_pair(struct ab_rotation *r, int k, int first, int *culprit, struct err *e)
{
    /* Every launch of one side meets every launch of the other. */
    const int launch_of[SIDES] = {k % LAUNCHES, k / LAUNCHES % LAUNCHES};
    struct pair *p = &r->ab_pairs->pair[k];

    *p = (struct pair){0};
    for (int i = 0; i < SIDES; i++) {
        const int s = (first + i) % SIDES;
        struct sample x;
        *culprit = s;
        clock_sleep_ms(GAP_MS);
        const enum status st = child_block(&r->child[s][launch_of[s]], r->calls, r->prime, &x, e);
        if (st != OK)
            return st;
        p->wall[s] = x.wall_ns / r->calls;
        p->cpu[s] = x.cpu_ns / r->calls;
        p->disturbed = p->disturbed || x.involuntary_switches > 0;
    }
    return OK;
}

static enum status take_pairs(struct ab_rotation *r, const struct ab_side *const side[SIDES],
                              int pairs, uint64_t salt, struct err *e)
{
    const uint64_t seed = r->ab_run->session.opt->seed, stream = rng_stream("duel.order");
    const int most = REPEATS * pairs;
    int good = 0;

    /* Ends also when enough undisturbed ones are out of reach: more than half are disturbed then.
     */
    for (int k = 0; good < pairs && good + most - k >= pairs; k++) {
        const int first = (int)(rng_u32(seed ^ salt << 32, stream, (uint64_t)k) & 1);
        struct err why;
        int culprit = BEFORE;
        const enum status st =
            *r->ab_run->session.setup.stop ? E_INTERRUPTED : take_pair(r, k, first, &culprit, &why);
        if (st != OK)
            return give_up(r, side[culprit], st, &why, e);
        r->ab_pairs->n = k + 1;
        good += !r->ab_pairs->pair[k].disturbed;
    }
    return OK;
}

enum status ab_pairs_run(struct ab_pairs *d, const struct ab_run *l, const struct bench_case *c,
                         const struct ab_side *before, const struct ab_side *after, int reference,
                         int pairs, uint64_t salt, struct err *e)
{
    const struct ab_side *const side[SIDES] = {before, after};
    struct ab_rotation r = {.ab_run = l, .bcase = c, .ab_pairs = d};

    *d = (struct ab_pairs){.arena_bytes = {NAN, NAN}};
    d->pair = calloc((size_t)pairs * REPEATS, sizeof(*d->pair));
    if (!d->pair)
        return fail(e, E_NOMEM, "no memory for %d pairs", pairs * REPEATS);
    for (int s = 0; s < SIDES; s++)
        for (int k = 0; k < LAUNCHES; k++)
            r.child[s][k].protocol.fd = -1;
    enum status st = launch_all(&r, side, reference, e);
    if (st == OK && d->status == ROW_OK)
        st = warm_up(&r, side, e);
    if (st == OK && d->status == ROW_OK)
        st = take_pairs(&r, side, pairs, salt, e);
    for (int s = 0; s < SIDES; s++)
        for (int k = 0; k < LAUNCHES; k++)
            child_close(&r.child[s][k]);
    return st;
}

void ab_pairs_free(struct ab_pairs *d)
{
    free(d->pair);
    d->pair = NULL;
}
