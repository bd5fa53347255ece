/* SPDX-License-Identifier: MIT
 *
 * Serving one case. Order matters: threads are pinned before anything is allocated, memory is bound
 * to the node before its first touch, the result is checked before the first timed call. */
#include "worker.h"
#include "variants/base/sort.h"

#include "exec.h"
#include "reference_cost.h"
#include "variants/backends/outside.h"
#include "workload.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status bind_memory(void *arg, void *base, size_t size, struct err *e)
{
    const struct worker *s = arg;

    return topo_membind(s->topo, s->bcase->opt->membind, s->team.first_cpu, base, size, e);
}

/* ---- the check ---------------------------------------------------------------------------- */

static size_t bytes_of_rows(const struct worker *s, int each)
{
    return job_elements(s->job.out_shape[0], each, s->job.out_shape[2]) * sizeof(float);
}

static enum status write_all(int file, const void *data, size_t size, struct err *e)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = pwrite(file, (const char *)data + done, size - done, (off_t)done);
        if (n <= 0)
            return fail(e, E_NOMEM, "cannot keep %zu bytes of reference output", size);
        done += (size_t)n;
    }
    return OK;
}

static enum status write_reference(const struct worker *s, struct err *e)
{
    const size_t size = bytes_of_rows(s, s->rows.each);

    if (checked_rows_are_all(&s->rows))
        return write_all(s->reference, s->job.out, size, e);
    float *const some = malloc(size);
    if (!some)
        return fail(e, E_NOMEM, "no %zu bytes for a reference output  -> use --no-check", size);
    job_copy_rows(&s->job, &s->rows, some);
    const enum status st = write_all(s->reference, some, size, e);
    free(some);
    return st;
}

static void put_agreement(struct report *r, const struct agreement *a)
{
    r->max_abs_err = a->max_abs;
    r->max_rel_err = a->max_rel;
    snprintf(r->worst_at, sizeof(r->worst_at), "%s", a->where);
}

static enum status compare(struct worker *s, const float *want, struct err *e)
{
    struct agreement a;

    TRY(job_check_output(&s->job, &s->rows, want, &a, e));
    put_agreement(&s->report, &a);
    s->report.nmse = a.nmse;
    return OK;
}

/* The size of the reference tells how many rows of each sequence it has. */
static enum status compare_with_file(struct worker *s, struct err *e)
{
    const size_t row = bytes_of_rows(s, 1), all = bytes_of_rows(s, s->job.out_shape[1]);
    struct stat have;

    if (fstat(s->reference, &have) != 0 || have.st_size <= 0 || (size_t)have.st_size > all ||
        (size_t)have.st_size % row != 0)
        return fail(e, E_CHILD, "reference output has %lld bytes, this case %zu",
                    (long long)have.st_size, all);
    const size_t size = (size_t)have.st_size;
    s->rows = job_rows(&s->job, (int)(size / row));
    void *want = mmap(NULL, size, PROT_READ, MAP_SHARED, s->reference, 0);
    if (want == MAP_FAILED)
        return fail(e, E_NOMEM, "cannot map %zu bytes of reference output", size);
    const enum status st = compare(s, want, e);
    munmap(want, size);
    return st;
}

static enum status check(struct worker *s, struct err *e)
{
    enum status st = OK;

    if (s->role == ROLE_NONE)
        return OK;
    if (s->role == ROLE_MAKE)
        st = write_reference(s, e);
    if (st == OK) /* of the maker against itself: no error, or NaN where it is not finite */
        st = compare_with_file(s, e);
    s->report.checked_rows = (double)s->rows.B * s->rows.each;
    s->report.output_rows = (double)s->rows.B * s->rows.L;
    return st;
}

/* A reference that may take check_s only: the rows that this allows. */
static enum status choose_rows(struct worker *s, struct err *e)
{
    struct reference_rates rates;
    double cost_s;

    s->rows = job_rows(&s->job, s->job.out_shape[1]);
    if (!reference_may_sample(&s->job, s->check_s))
        return OK;
    TRY(reference_rates_measure(&rates, s->job.engine.threads, e));
    s->rows = job_rows(&s->job, reference_rows(&s->job, &rates, s->check_s, &cost_s));
    return job_want_rows(&s->job, &s->rows, e);
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
    if (!topo)
        TRY(topo_open(&s->topo, NULL, e));
    TRY(pin_team(&s->team, s->topo, c->opt->pin, c->threads, e));
    TRY(clocks_open(&s->clocks, c->threads, e));
    energy_find(&s->energy, "");
    if (backend_is_outside(c->backend->name)) /* what it prints is not of our tables */
        dup2(STDERR_FILENO, STDOUT_FILENO);
    TRY(job_open(&s->job, c, e));
    s->job.clock_ns = clock_wall_ns;
    report_describe(&s->report, &s->job.engine, &s->team);
    const struct engine *const g = &s->job.engine;
    const char *const by = c->config.act_dtype == ROWS_Q8 && g->int8_by ? g->int8_by() : "";
    const char *const impl = job_impl(&s->job);
    snprintf(s->report.impl, sizeof(s->report.impl), "%s%s%s", impl, *impl && *by ? ":" : "", by);
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
        return fail(e, E_NOMEM, "no %zu bytes to flush the caches with  -> use --cache hot",
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
    const double held = b->held_bytes ? (double)b->held_bytes() : 0; /* beside the arena */
    r->part_bytes[PART_SCRATCH] += held;
    r->arena_bytes += held;
    return st;
}

/* The median time of the copies of a forward pass; NAN where it has none of its own. */
static double time_gather(struct job *j)
{
    enum { TIMES = 15 };
    double ns[TIMES];

    if (job_goes_backward(j) || !job_gather(j))
        return NAN;
    for (int i = 0; i < TIMES; i++) {
        const int64_t start = clock_wall_ns();
        job_gather(j);
        ns[i] = (double)(clock_wall_ns() - start);
    }
    sort_numbers(ns, TIMES);
    return ns[TIMES / 2];
}

/* NAN where positions run all layers. */
static void count_layers(struct worker *s)
{
    struct layers_count all = {{0}};

    if (workload_is_model(s->job.bcase->workload)) {
        const struct layers_run run = lm_layers_run(&s->job.lm.lm);
        layers_count(&all, &run);
    }
    s->report.layers_run = layers_mean(&all);
    s->report.layers_p90 = layers_p90(&all);
}

enum status worker_place(struct worker *s, struct err *e)
{
    struct report *r = &s->report;
    const int64_t start = clock_wall_ns();
    enum status st = OK;

    TRY(job_place(&s->job, bind_memory, s, e));
    TRY(choose_rows(s, e));
    r->bind_ns = (double)(clock_wall_ns() - start);
    for (int p = 0; p < PART_COUNT; p++)
        r->part_bytes[p] = (double)s->job.arena.part[p];
    r->predicted_bytes = (double)job_predicted_bytes(&s->job);
    r->cache_bytes = (double)job_cache_bytes(&s->job);
    r->bytes = job_bytes(&s->job);
    r->tokens = job_tokens(&s->job);
    float *gradients = NULL;
    if (s->role == ROLE_COMPARE)
        st = job_expect_gradients(&s->job, &gradients, e);
    if (st == OK)
        st = first_run(s, e);
    r->flop = job_flop(&s->job); /* after a run: depth may depend on it */
    count_layers(s);
    if (st == OK)
        st = check(s, e);
    if (st == OK && gradients)
        check_gradients(s, gradients);
    r->moved_bytes = job_moved_bytes(&s->job);
    if (st == OK && r->moved_bytes > 0) /* last: outputs are used up */
        r->gather_ns = time_gather(&s->job);
    free(gradients);
    vm_hwm_restart(); /* the check's memory does not count for the case */
    return st == OK ? prepare_cold(s, e) : st;
}

enum status worker_reference(struct worker *s, double limit_s, struct err *e)
{
    CHECK(s->role == ROLE_MAKE);
    s->check_s = limit_s;
    return worker_place(s, e);
}

static void flush_caches(struct worker *s)
{
    for (size_t i = 0; i < s->flush_bytes; i += 64)
        s->flush[i]++;
}

static void clocks_restart(struct worker *s)
{
    exec_apart();
    clocks_start(&s->clocks);
}

static struct clock_span clocks_since(const struct worker *s)
{
    struct clock_span span = clocks_stop(&s->clocks);
    const struct clock_span apart = exec_apart();

    span.wall_ns -= apart.wall_ns;
    span.cpu_ns -= apart.cpu_ns;
    return span;
}

/* Cold: caches are swept before each call, so calls are timed one by one. */
static void cold_block(struct worker *s, uint32_t calls, struct sample *out)
{
    for (uint32_t i = 0; i < calls; i++) {
        flush_caches(s);
        clocks_restart(s);
        job_run(&s->job);
        const struct clock_span span = clocks_since(s);
        out->wall_ns += span.wall_ns;
        out->cpu_ns += span.cpu_ns;
        out->involuntary_switches += span.switches;
        token_times_add(&s->tokens, &s->job);
    }
}

#ifdef SLOW_PCT
/* A test build that is SLOW_PCT % slower in the timed region only: the gate must notice. */
static void take_longer(const struct clocks *c)
{
    const double cpu_ns = clocks_stop(c).cpu_ns * (1 + SLOW_PCT / 100.0);

    while (clocks_stop(c).cpu_ns < cpu_ns)
        ;
}
#endif

enum status worker_block(void *ctx, uint32_t calls, bool prime, struct sample *out, struct err *e)
{
    struct worker *s = ctx;

    TRY(token_times_reserve(&s->tokens, &s->job, calls, e));
    *out = (struct sample){.calls = calls};
    if (s->flush) { /* its energy would be that of the sweeps, too */
        cold_block(s, calls, out);
        out->spin_ns = clock_spin_ns();
        token_times_put(&s->tokens, out);
        return OK;
    }
    if (prime)
        job_run(&s->job);
    energy_start(&s->energy);
    clocks_restart(s);
    for (uint32_t i = 0; i < calls; i++) {
        job_run(&s->job);
        token_times_add(&s->tokens, &s->job);
    }
#ifdef SLOW_PCT
    take_longer(&s->clocks);
#endif
    const struct clock_span span = clocks_since(s);
    out->energy_j = energy_joules(&s->energy);
    out->spin_ns = clock_spin_ns();
    out->wall_ns = span.wall_ns;
    out->cpu_ns = span.cpu_ns;
    out->involuntary_switches = span.switches;
    token_times_put(&s->tokens, out);
    return OK;
}

void worker_close(struct worker *s)
{
    s->report.rss_peak_bytes = vm_hwm_bytes();
    outside_close();
    job_close(&s->job);
    token_times_free(&s->tokens);
    if (s->own_topo)
        topo_close(s->topo);
    free(s->flush);
    clocks_close(&s->clocks);
    s->topo = NULL;
    s->flush = NULL;
}
