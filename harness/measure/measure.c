/* SPDX-License-Identifier: MIT
 *
 * The measuring loop: warm-up, calibration, shuffled rounds, stopping. It reads no clock: times
 * come from the targets, so that a test can replay any history. */
#include "measure.h"

#include "harness/machine/clock.h"
#include "harness/util/grow.h"
#include "stats.h"
#include "variants/base/rng.h"

#include <math.h>
#include <stdlib.h>

const char *const stop_name[] = {"ci", "time", "interrupted", "failed"};

enum {
    LEAST_SAMPLES = 3,  /* of any finished target */
    GROWTH = 10,        /* most that the calls of a warm-up block grow by */
    PRIMED_BLOCKS = 20, /* calls longer than so many blocks are not primed */
    CHECK_INTERVAL = 8, /* look at the interval again after 1/8 more samples */
    MAX_CALLS = 1000000000,
};

/* One target's progress. */
struct run {
    const struct target *target;
    struct outcome *out;
    bool ab_run, prime;
    double spent_ns;        /* timed and priming calls */
    struct sample *samples; /* [out->samples] */
    double *work;           /* [2 out->samples], for the interval */
    int next_check;         /* samples at which to look at the interval again */
};

struct session {
    const struct schedule *s;
    struct run *runs; /* [n] */
    int *order;       /* [n], live targets of this round */
    sample_fn *emit;
    void *arg;
    struct err *e;
};

static bool stopped(const struct schedule *s) { return s->stop && *s->stop; }

/* Target i is done; tell the world why. */
static enum status finish(struct session *m, int i, enum stop_reason why)
{
    struct run *r = &m->runs[i];

    r->ab_run = false;
    r->out->stop = why;
    return m->emit(m->arg, i, NULL, r->out, m->e);
}

/* Target i cannot go on. A block that fails after the user's Ctrl-C failed because of it. */
static enum status drop_target(struct session *m, int i, enum status why)
{
    m->runs[i].out->status = why;
    return finish(m, i, why == E_INTERRUPTED || stopped(m->s) ? STOP_INTERRUPTED : STOP_FAILED);
}

static enum status run_block(const struct run *r, uint32_t calls, bool prime, struct sample *x)
{
    *x = (struct sample){0};
    const enum status st = r->target->block(r->target->ctx, calls, prime, x, &r->out->err);

    x->calls = calls;
    if (st == OK && !(x->wall_ns > 0 && isfinite(x->wall_ns)))
        return fail(&r->out->err, E_CHILD,
                    "a block of %u calls took %g ns  -> the clock is broken; see bench doctor",
                    calls, x->wall_ns);
    return st;
}

/* ---- warm-up and calibration --------------------------------------------------------------- */

static uint32_t calls_for(double block_ns, double call_ns)
{
    const double calls = ceil(block_ns / call_ns);

    return calls < 1 ? 1 : calls > MAX_CALLS ? MAX_CALLS : (uint32_t)calls;
}

/* Cold caches, interruptions and the clock itself only ever add time: the fastest block is the best
 * estimate of a call. Ends only after a block at least half as long as wanted. */
static enum status warm_up(struct session *m, int i)
{
    struct run *r = &m->runs[i];
    const double block_ns = m->s->block_ms * 1e6;
    double call_ns = INFINITY, spent_ns = 0;
    uint32_t calls = 1, want = 1;

    clock_sleep_ms(m->s->gap_ms);
    for (bool done = false; !done;) {
        struct sample x;
        const enum status st = stopped(m->s) ? E_INTERRUPTED : run_block(r, calls, false, &x);
        if (st != OK)
            return drop_target(m, i, st);
        spent_ns += x.wall_ns;
        call_ns = fmin(call_ns, x.wall_ns / calls);
        want = calls_for(block_ns, call_ns);
        done = spent_ns >= m->s->warmup_ms * 1e6 && want <= 2 * calls;
        if (want > calls)
            calls = want / GROWTH < calls ? want : calls * GROWTH;
    }
    r->out->inner_calls = want;
    r->prime = call_ns <= PRIMED_BLOCKS * block_ns;
    return OK;
}

/* ---- stopping ------------------------------------------------------------------------------ */

static bool narrow_enough(const struct schedule *s, struct run *r)
{
    const int n = r->out->samples;

    if (n < s->min_samples || n < LEAST_SAMPLES || n < r->next_check)
        return false;
    r->next_check = n + max_int(1, n / CHECK_INTERVAL);

    const int used = stats_usable(r->samples, n, r->work, NULL);
    stats_sort(r->work, used);
    const struct interval ci = stats_median_interval(r->work, used, s->seed, r->work + used);
    return (ci.high - ci.low) / 2 <= s->target_ci * ci.mid;
}

static bool out_of_time(const struct schedule *s, const struct run *r)
{
    return r->out->samples >= LEAST_SAMPLES && r->spent_ns >= s->max_time_s * 1e9;
}

/* ---- rounds -------------------------------------------------------------------------------- */

static enum status make_room(struct run *r)
{
    const size_t n = (size_t)r->out->samples;
    const enum status st = GROW(r->samples, n, &r->out->err);

    return st == OK ? grow_array(&r->work, n, 2 * sizeof(*r->work), &r->out->err) : st;
}

/* One counted block of target i. */
static enum status step(struct session *m, int i, uint32_t round)
{
    struct run *r = &m->runs[i];
    struct sample x;

    clock_sleep_ms(m->s->gap_ms);
    enum status st = stopped(m->s) ? E_INTERRUPTED : OK;
    if (st == OK)
        st = make_room(r);
    if (st == OK)
        st = run_block(r, r->out->inner_calls, r->prime, &x);
    if (st != OK)
        return drop_target(m, i, st);

    x.round = round;
    x.disturbed = x.involuntary_switches > 0;
    CHECK(r->samples);
    r->samples[r->out->samples++] = x;
    r->spent_ns += x.wall_ns + (r->prime ? x.wall_ns / x.calls : 0);
    st = m->emit(m->arg, i, &x, r->out, m->e);
    if (st != OK)
        return st;
    if (narrow_enough(m->s, r))
        return finish(m, i, STOP_CI);
    if (out_of_time(m->s, r))
        return finish(m, i, STOP_TIME);
    return OK;
}

/* Fill m->order with the live ones of targets [first, last), shuffled; returns how many. */
static int shuffle_live(struct session *m, int first, int last, uint32_t round)
{
    const uint64_t stream = rng_stream("measure.order");
    int n = 0;

    for (int i = first; i < last; i++)
        if (m->runs[i].ab_run)
            m->order[n++] = i;
    for (int k = n - 1; k > 0; k--) { /* Fisher and Yates */
        const uint64_t bits = rng_u32(m->s->seed, stream, (uint64_t)round << 32 | (uint64_t)k);
        const int other = (int)(bits * (uint64_t)(k + 1) >> 32), held = m->order[k];
        m->order[k] = m->order[other];
        m->order[other] = held;
    }
    return n;
}

/* Targets [first, last) from cold to done. Not OK only when `emit` failed. */
static enum status measure_together(struct session *m, int first, int last)
{
    enum status st = OK;
    int ab_run;

    for (int i = first; i < last && st == OK; i++)
        st = warm_up(m, i);
    for (uint32_t round = 0; st == OK && (ab_run = shuffle_live(m, first, last, round)) > 0;
         round++)
        for (int k = 0; k < ab_run && st == OK; k++)
            st = step(m, m->order[k], round);
    return st;
}

enum status measure(const struct target *t, int n, const struct schedule *s, sample_fn *emit,
                    void *arg, struct outcome *out, struct err *e)
{
    struct session m = {.s = s, .emit = emit, .arg = arg, .e = e};
    enum status st = OK;

    for (int i = 0; i < n; i++)
        out[i] = (struct outcome){.stop = STOP_INTERRUPTED};
    m.runs = calloc((size_t)n + 1, sizeof(*m.runs));
    m.order = calloc((size_t)n + 1, sizeof(*m.order));
    if (!m.runs || !m.order) {
        st = fail(e, E_NOMEM, "no memory to measure %d targets  -> measure fewer at once", n);
        goto out;
    }
    for (int i = 0; i < n; i++)
        m.runs[i] = (struct run){.target = &t[i], .out = &out[i], .ab_run = true};

    const int together = s->interleave ? n : 1;
    for (int i = 0; i < n && st == OK; i += together)
        st = measure_together(&m, i, i + together);
    for (int i = 0; i < n && st == OK; i++)
        if (out[i].stop == STOP_INTERRUPTED)
            st = fail(e, E_INTERRUPTED, "interrupted  -> --resume continues this run");
out:
    for (int i = 0; m.runs && i < n; i++) {
        free(m.runs[i].samples);
        free(m.runs[i].work);
    }
    free(m.runs);
    free(m.order);
    return st;
}
