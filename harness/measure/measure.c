/* SPDX-License-Identifier: MIT
 *
 * The measuring loop: warm-up, calibration, shuffled rounds, stopping. It reads no clock: times
 * come from the sides, so that a test can replay any sequence. */
#include "measure.h"

#include "harness/machine/clock.h"
#include "harness/util/grow.h"
#include "stats.h"
#include "variants/base/rng.h"

const char *const stop_name[] = {"ci", "time", "interrupted", "failed", "rounds"};

enum {
    GROWTH = 10,        /* factor by which the calls of a warm-up block grow at most */
    PRIMED_BLOCKS = 20, /* calls longer than this many blocks are not primed */
    CHECK_INTERVAL = 8, /* recompute the interval after 1/8 more samples */
    MAX_CALLS = 1000000000,
};

/* One side's progress. */
struct run {
    const struct side *side;
    struct outcome *out;
    bool live, prime;
    double call_ns;         /* the fastest call of its warm-up */
    double spent_ns;        /* timed and priming calls */
    struct sample *samples; /* [out->samples] */
    double *work;           /* [out->samples], for the interval */
    int next_check;         /* samples at which to recompute the interval */
};

struct session {
    const struct schedule *s;
    struct run *runs; /* [n] */
    int *order;       /* [n], active sides of this round */
    sample_fn *emit;
    void *arg;
    struct err *e;
};

static bool stopped(const struct schedule *s) { return s->stop && *s->stop; }

/* Side i is done, for this reason. */
static enum status finish(struct session *m, int i, enum stop_reason why)
{
    struct run *r = &m->runs[i];

    r->live = false;
    r->out->stop = why;
    return m->emit(m->arg, i, NULL, r->out, m->e);
}

/* Side i cannot continue. A block that fails after the user's Ctrl-C failed because of it. */
static enum status drop_side(struct session *m, int i, enum status why)
{
    m->runs[i].out->status = why;
    return finish(m, i, why == E_INTERRUPTED || stopped(m->s) ? STOP_INTERRUPTED : STOP_FAILED);
}

static enum status run_block(const struct run *r, int launch, uint32_t calls, bool prime,
                             struct sample *x)
{
    *x = (struct sample){0};
    const enum status st = r->side->block(r->side->launch[launch], calls, prime, x, &r->out->err);

    x->calls = calls;
    if (st == OK && !(x->wall_ns > 0 && isfinite(x->wall_ns)))
        return fail(&r->out->err, E_CHILD,
                    "a block of %u calls took %g ns: the clock is broken  -> see: bench doctor",
                    calls, x->wall_ns);
    return st;
}

/* ---- warm-up and calibration --------------------------------------------------------------- */

static uint32_t calls_for(double block_ns, double call_ns)
{
    const double calls = ceil(block_ns / call_ns);

    return calls < 1 ? 1 : calls > MAX_CALLS ? MAX_CALLS : (uint32_t)calls;
}

/* Cold caches, interruptions and the clock only ever add time: the fastest block is the best
 * estimate of a call. Ends only after a block at least half as long as wanted. */
static enum status warm_up_launch(struct session *m, struct run *r, int launch)
{
    const double block_ns = m->s->block_ms * 1e6;
    const double warmup_ns = m->s->warmup_ms * 1e6 / max_int(1, m->s->launches);
    double call_ns = INFINITY, spent_ns = 0;
    uint32_t calls = 1, want = 1;

    clock_sleep_ms(m->s->gap_ms);
    for (bool done = false; !done;) {
        struct sample x;
        TRY(stopped(m->s) ? E_INTERRUPTED : run_block(r, launch, calls, false, &x));
        spent_ns += x.wall_ns;
        call_ns = fmin(call_ns, x.wall_ns / calls);
        want = calls_for(block_ns, call_ns);
        done = spent_ns >= warmup_ns && want <= 2 * calls;
        if (want > calls)
            calls = want / GROWTH < calls ? want : calls * GROWTH;
    }
    r->call_ns = fmin(r->call_ns, call_ns);
    return OK;
}

static enum status warm_up(struct session *m, int i)
{
    struct run *r = &m->runs[i];

    r->call_ns = INFINITY;
    for (int k = 0; k < r->side->launches; k++) {
        const enum status st = warm_up_launch(m, r, k);
        if (st != OK)
            return drop_side(m, i, st);
    }
    return OK;
}

/* Calls of a block and whether it is primed: per side, or, if blocks are compared one by one, the
 * same for all, set by the fastest side. */
static void calibrate(struct session *m, int first, int last)
{
    const double block_ns = m->s->block_ms * 1e6;
    double fastest = INFINITY;

    for (int i = first; i < last; i++)
        fastest = fmin(fastest, m->runs[i].call_ns);
    for (int i = first; i < last; i++) {
        struct run *r = &m->runs[i];
        const double call_ns = m->s->rounds ? fastest : r->call_ns;
        if (!r->live)
            continue;
        r->out->inner_calls = calls_for(block_ns, call_ns);
        r->prime = call_ns <= PRIMED_BLOCKS * block_ns;
    }
}

/* ---- stopping ------------------------------------------------------------------------------ */

/* The share of a launch, rounded up. */
static int share_of(const struct schedule *s, int samples)
{
    const int launches = max_int(1, s->launches);

    return (samples + launches - 1) / launches;
}

/* Deviations of n launches go down by the root of n. */
static bool narrow_enough(const struct schedule *s, struct run *r)
{
    const int n = r->out->samples;

    if (n < share_of(s, s->min_samples) || n < INTERVAL_SAMPLES || n < r->next_check)
        return false;
    r->next_check = n + max_int(1, n / CHECK_INTERVAL);

    const int used = stats_usable(r->samples, n, r->work, NULL);
    sort_numbers(r->work, used);
    const struct interval ci = stats_median_interval(r->work, used);
    return (ci.high - ci.low) / 2 <= s->target_ci * sqrt(max_int(1, s->launches)) * ci.mid;
}

/* Six samples have an interval. Where one block takes longer than the limit allows for all, few
 * must do, and the row says `few`. */
static bool out_of_time(const struct schedule *s, const struct run *r, double block_ns)
{
    const double limit_ns = s->max_time_s * 1e9;
    if (block_ns > limit_ns)
        return r->out->samples >= FEWEST_SAMPLES;
    return r->out->samples >= share_of(s, INTERVAL_SAMPLES) &&
           r->spent_ns >= limit_ns / max_int(1, s->launches);
}

/* ---- rounds -------------------------------------------------------------------------------- */

static enum status make_room(struct run *r)
{
    const size_t n = (size_t)r->out->samples;

    TRY(GROW(r->samples, n, &r->out->err));
    return GROW(r->work, n, &r->out->err);
}

/* Rotate the launches of a side; the rotation is slower for later sides. */
static int launch_of(const struct session *m, int i, uint32_t round)
{
    for (int k = 0; k < i; k++)
        round /= (uint32_t)m->runs[k].side->launches;
    return (int)(round % (uint32_t)m->runs[i].side->launches);
}

static enum status counted_block(const struct session *m, int i, uint32_t round, struct sample *x)
{
    struct run *const r = &m->runs[i];

    clock_sleep_ms(m->s->gap_ms);
    if (stopped(m->s))
        return E_INTERRUPTED;
    TRY(make_room(r));
    return run_block(r, launch_of(m, i, round), r->out->inner_calls, r->prime, x);
}

/* One counted block of side i. */
static enum status step(struct session *m, int i, uint32_t round)
{
    struct run *r = &m->runs[i];
    struct sample x;
    const enum status st = counted_block(m, i, round, &x);

    if (st != OK)
        return drop_side(m, i, st);

    x.round = round;
    x.disturbed = x.involuntary_switches > 0;
    CHECK(r->samples);
    r->samples[r->out->samples++] = x;
    r->spent_ns += x.wall_ns + (r->prime ? x.wall_ns / x.calls : 0);
    TRY(m->emit(m->arg, i, &x, r->out, m->e));
    if (m->s->rounds)
        return OK;
    if (narrow_enough(m->s, r))
        return finish(m, i, STOP_CI);
    if (out_of_time(m->s, r, x.wall_ns))
        return finish(m, i, STOP_TIME);
    return OK;
}

/* Fill m->order with the active ones of sides [first, last), shuffled; returns their number. */
static int shuffle_live(struct session *m, int first, int last, uint32_t round)
{
    const uint64_t stream = rng_stream("measure.order");
    int n = 0;

    for (int i = first; i < last; i++)
        if (m->runs[i].live)
            m->order[n++] = i;
    for (int k = n - 1; k > 0; k--) { /* Fisher and Yates */
        const uint64_t bits = rng_u32(m->s->seed, stream, (uint64_t)round << 32 | (uint64_t)k);
        const int other = (int)(bits * (uint64_t)(k + 1) >> 32), held = m->order[k];
        m->order[k] = m->order[other];
        m->order[other] = held;
    }
    return n;
}

/* Sides that stop by themselves. */
static enum status run_rounds(struct session *m, int first, int last)
{
    int live;

    for (uint32_t round = 0; (live = shuffle_live(m, first, last, round)) > 0; round++)
        for (int k = 0; k < live; k++)
            TRY(step(m, m->order[k], round));
    return OK;
}

static bool all_live(const struct session *m, int first, int last)
{
    for (int i = first; i < last; i++)
        if (!m->runs[i].live)
            return false;
    return true;
}

/* Was no block of this round disturbed? It is the last of every side. */
static bool round_is_good(const struct session *m, int first, int last)
{
    for (int i = first; i < last; i++)
        if (m->runs[i].samples[m->runs[i].out->samples - 1].disturbed)
            return false;
    return true;
}

/* Sides that stop together. */
static enum status run_rounds_together(struct session *m, int first, int last)
{
    const int wanted = m->s->rounds, most = MAX_REPEATS * wanted;

    for (int done = 0, good = 0; good < wanted && good + most - done >= wanted; done++) {
        const int n = shuffle_live(m, first, last, (uint32_t)done);
        for (int k = 0; k < n && all_live(m, first, last); k++)
            TRY(step(m, m->order[k], (uint32_t)done));
        if (!all_live(m, first, last))
            break;
        good += round_is_good(m, first, last);
    }
    for (int i = first; i < last; i++)
        if (m->runs[i].live)
            TRY(finish(m, i, STOP_ROUNDS));
    return OK;
}

/* Sides [first, last) from cold to done. Not OK only when `emit` failed. */
static enum status measure_together(struct session *m, int first, int last)
{
    for (int i = first; i < last; i++)
        TRY(warm_up(m, i));
    calibrate(m, first, last);
    return m->s->rounds ? run_rounds_together(m, first, last) : run_rounds(m, first, last);
}

static enum status measure_all(struct session *m, int n)
{
    const int together = m->s->interleave ? n : 1;

    for (int i = 0; i < n; i += together)
        TRY(measure_together(m, i, i + together));
    for (int i = 0; i < n; i++)
        if (m->runs[i].out->stop == STOP_INTERRUPTED)
            return fail(m->e, E_INTERRUPTED, "interrupted  -> continue this run with --resume");
    return OK;
}

enum status measure(const struct side *side, int n, const struct schedule *s, sample_fn *emit,
                    void *arg, struct outcome *out, struct err *e)
{
    struct session m = {.s = s,
                        .emit = emit,
                        .arg = arg,
                        .e = e,
                        .runs = need_room((size_t)n + 1, sizeof(*m.runs)),
                        .order = need_room((size_t)n + 1, sizeof(*m.order))};

    for (int i = 0; i < n; i++) {
        out[i] = (struct outcome){.stop = STOP_INTERRUPTED};
        m.runs[i] = (struct run){.side = &side[i], .out = &out[i], .live = true};
    }
    const enum status st = measure_all(&m, n);
    for (int i = 0; i < n; i++) {
        free(m.runs[i].samples);
        free(m.runs[i].work);
    }
    free(m.runs);
    free(m.order);
    return st;
}
