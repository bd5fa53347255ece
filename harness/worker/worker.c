/* SPDX-License-Identifier: MIT
 *
 * Serving one case. Order matters: threads are pinned before anything is allocated, memory is bound
 * to the node before its first touch, the result is checked before the first timed call. */
#include "worker.h"

#include "harness/machine/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status bind_memory(void *arg, void *base, size_t size, struct err *e)
{
    const struct worker *s = arg;

    return topo_membind(s->topo, s->bcase->opt->membind, s->team.first_cpu, base, size, e);
}

/* ---- the check ---------------------------------------------------------------------------- */

static enum status write_reference(const struct worker *s, struct err *e)
{
    const char *from = (const char *)s->job.out;
    const size_t size = s->job.n_out * sizeof(float);

    for (size_t done = 0; done < size;) {
        const ssize_t n = pwrite(s->reference, from + done, size - done, (off_t)done);
        if (n <= 0)
            return fail(e, E_NOMEM, "cannot keep %zu bytes of reference output", size);
        done += (size_t)n;
    }
    return OK;
}

static void put_agreement(struct report *r, const struct agreement *a)
{
    r->max_abs_err = a->max_abs;
    r->max_rel_err = a->max_rel;
    snprintf(r->worst_at, sizeof(r->worst_at), "%s", a->where);
}

static void compare(struct worker *s, const float *want)
{
    struct agreement a;

    job_check_output(&s->job, want, &a);
    put_agreement(&s->report, &a);
    s->report.nmse = a.nmse;
}

static enum status check(struct worker *s, struct err *e)
{
    const size_t size = s->job.n_out * sizeof(float);
    struct stat have;

    if (s->role == ROLE_NONE)
        return OK;
    if (s->role == ROLE_MAKE) { /* against itself: no error, or NaN where it is not finite */
        compare(s, s->job.out);
        return write_reference(s, e);
    }
    if (fstat(s->reference, &have) != 0 || (size_t)have.st_size != size)
        return fail(e, E_CHILD, "reference output has %lld bytes, this case %zu",
                    (long long)have.st_size, size);
    void *want = mmap(NULL, size, PROT_READ, MAP_SHARED, s->reference, 0);
    if (want == MAP_FAILED)
        return fail(e, E_NOMEM, "cannot map %zu bytes of reference output", size);
    compare(s, want);
    munmap(want, size);
    return OK;
}

/* The gradients of the first run against the expected ones. The worse of output and gradients is
 * reported. */
static void check_gradients(struct worker *s, const float *want)
{
    struct report *r = &s->report;
    struct agreement a;

    job_check_gradients(&s->job, want, &a);
    if (!(a.nmse <= r->nmse) && !isnan(r->nmse))
        r->nmse = a.nmse;
    if (a.max_rel <= r->max_rel_err || isnan(r->max_rel_err))
        return;
    put_agreement(r, &a);
}

/* ---- life --------------------------------------------------------------------------------- */

enum status worker_open(struct worker *s, const struct bench_case *c, enum role role, int reference,
                        struct topo *topo, struct err *e)
{
    *s = (struct worker){.bcase = c, .role = role, .reference = reference, .topo = topo};
    s->own_topo = !topo;
    s->report.max_abs_err = s->report.max_rel_err = s->report.nmse = NAN;
    vm_hwm_restart(); /* exclude the peak of earlier work of this process */
    s->report.rss_before_bytes = vm_hwm_bytes();
    cpu_limit((enum isa)c->opt->max_isa);
    enum status st = topo ? OK : topo_open(&s->topo, NULL, e);
    if (st == OK)
        st = pin_team(&s->team, s->topo, c->opt->pin, c->threads, e);
    if (st == OK)
        st = job_open(&s->job, c, e);
    if (st != OK)
        return st;
    report_describe(&s->report, &s->job.engine, &s->team);
    snprintf(s->report.impl, sizeof(s->report.impl), "%s", job_impl(&s->job));
    s->report.arena_bytes = (double)s->job.arena.used;
    return OK;
}

/* A buffer to sweep every cache level with, twice the size of the last. */
static enum status prepare_cold(struct worker *s, struct err *e)
{
    struct topo_facts f;

    if (s->bcase->opt->cache != CACHE_COLD)
        return OK;
    topo_facts(s->topo, &f);
    const size_t last = f.l3_bytes ? f.l3_bytes : f.l2_bytes;
    s->flush_bytes = 2 * (last ? last : (size_t)32 << 20);
    s->flush = malloc(s->flush_bytes);
    if (!s->flush)
        return fail(e, E_NOMEM, "no %zu bytes to flush the caches with  -> --cache hot",
                    s->flush_bytes);
    memset(s->flush, 1, s->flush_bytes);
    return OK;
}

/* The checked run shows which kernels a library that selects them itself has chosen, and whether it
 * has optimised ones for everything. */
static enum status first_run(struct worker *s, struct err *e)
{
    const struct backend *b = s->job.engine.backend;
    struct report *r = &s->report;
    char names[sizeof(r->impl) / 2];
    enum status st = OK;

    if (b->ran)
        b->ran(names, sizeof(names), NULL); /* clear the record of what ran during bind */
    job_run(&s->job);
    if (b->ran)
        st = b->ran(names, sizeof(names), e);
    if (b->ran && names[0])
        snprintf(r->impl, sizeof(r->impl), "%s:%s", job_impl(&s->job), names);
    if (b->held_bytes)
        r->part_bytes[PART_SCRATCH] += (double)b->held_bytes();
    return st;
}

enum status worker_place(struct worker *s, struct err *e)
{
    struct report *r = &s->report;
    const int64_t start = clock_wall_ns();
    enum status st = job_place(&s->job, bind_memory, s, e);

    if (st != OK)
        return st;
    r->bind_ns = (double)(clock_wall_ns() - start);
    for (int p = 0; p < PART_COUNT; p++)
        r->part_bytes[p] = (double)s->job.arena.part[p];
    r->predicted_bytes = (double)job_predicted_bytes(&s->job);
    r->bytes = job_bytes(&s->job);
    r->tokens = job_tokens(&s->job);
    float *gradients = NULL;
    if (s->role == ROLE_COMPARE)
        st = job_expect_gradients(&s->job, &gradients, e);
    if (st == OK)
        st = first_run(s, e);
    r->flop = job_flop(&s->job); /* after a run: depth may depend on it */
    if (st == OK)
        st = check(s, e);
    if (st == OK && gradients)
        check_gradients(s, gradients);
    free(gradients);
    vm_hwm_restart(); /* the check's memory does not count for the case */
    return st == OK ? prepare_cold(s, e) : st;
}

static void flush_caches(struct worker *s)
{
    for (size_t i = 0; i < s->flush_bytes; i += 64)
        s->flush[i]++;
}

/* Cold: caches are swept before each call, so calls are timed one by one. */
static void cold_block(struct worker *s, uint32_t calls, struct sample *out)
{
    for (uint32_t i = 0; i < calls; i++) {
        flush_caches(s);
        const struct clock_mark start = clock_start();
        job_run(&s->job);
        const struct clock_span span = clock_stop(&start);
        out->wall_ns += span.wall_ns;
        out->cpu_ns += span.cpu_ns;
        out->involuntary_switches += span.switches;
    }
}

#ifdef SLOW_PCT
/* A test build that is SLOW_PCT % slower in the timed region only: the gate must notice. */
static void take_longer(const struct clock_mark *start)
{
    const double cpu_ns = clock_stop(start).cpu_ns * (1 + SLOW_PCT / 100.0);

    while (clock_stop(start).cpu_ns < cpu_ns)
        ;
}
#endif

enum status worker_block(void *ctx, uint32_t calls, bool prime, struct sample *out, struct err *e)
{
    struct worker *s = ctx;

    (void)e;
    *out = (struct sample){.calls = calls};
    if (s->flush) {
        cold_block(s, calls, out);
        return OK;
    }
    if (prime)
        job_run(&s->job);
    const struct clock_mark start = clock_start();
    for (uint32_t i = 0; i < calls; i++)
        job_run(&s->job);
#ifdef SLOW_PCT
    take_longer(&start);
#endif
    const struct clock_span span = clock_stop(&start);
    out->wall_ns = span.wall_ns;
    out->cpu_ns = span.cpu_ns;
    out->involuntary_switches = span.switches;
    return OK;
}

void worker_close(struct worker *s)
{
    s->report.rss_peak_bytes = vm_hwm_bytes();
    job_close(&s->job);
    if (s->own_topo)
        topo_close(s->topo);
    free(s->flush);
    s->topo = NULL;
    s->flush = NULL;
}
