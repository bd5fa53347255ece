/* SPDX-License-Identifier: MIT
 *
 * What the parts of a run cost in seconds, added up: operations over rates, and the fixed costs
 * of launches and checks. */
#include "estimate.h"

#include "launches.h"

#include "measure.h"

double check_limit_s(const struct options *o)
{
    return o->check_time_s > 0 ? o->check_time_s : o->max_time_s;
}

double case_estimate_s(const struct case_estimate *c)
{
    return c->reference + c->gradients + c->run;
}

const struct case_estimate *estimate_of(const struct estimate *t, const struct bench_case *c)
{
    CHECK(c >= t->plan->cases && c < t->plan->cases + t->plan->n);
    return &t->cases[c - t->plan->cases];
}

enum status speeds_measure(struct speeds *s, struct peaks *peaks, const struct child_setup *setup,
                           const struct topo *topo, const char *pin, int threads, struct err *e)
{
    const double seconds = 0.02; /* estimates read multiply-adds only */
    int *const cpus = need_room((size_t)max_int(1, threads), sizeof(*cpus));
    struct err why;

    *s = (struct speeds){.threads = max_int(1, setup->reference_threads), .peaks = peaks};
    if (threads > 0 && topo_plan(topo, pin, threads, cpus, &why) == OK &&
        peaks_measure(setup, threads, cpus, cpu_isa(), seconds, peaks, &why) == OK)
        s->n_peaks = 1;
    free(cpus);
    const int64_t start = clock_wall_ns();
    const enum status st = reference_rates_in_child(setup, &s->reference, e);
    s->start_s = (double)(clock_wall_ns() - start) * 1e-9 - s->reference.spent_s;
    return st;
}

struct peaks peaks_assumed(int threads)
{
    const double hz = 3e9;
    struct peaks p = {.threads = threads};

    for (int isa = 0; isa < ISA_COUNT; isa++)
        p.flops[isa] = threads * hz * peak_loops[isa]->flop / peak_loops[isa]->cycles;
    return p;
}

double load_slows(double load, int threads, int cpus)
{
    return cpus > 0 ? fmax(1, (load + threads) / cpus) : 1;
}

static double slow_of(const struct speeds *t) { return fmax(1, t->slow); }

/* FLOP per second that kernels reach; 0 = unknown. */
static double flops_of(const struct speeds *t, const struct bench_case *c)
{
    const double efficiency = 0.45; /* of the peak: 0.25 with 32 dimensions, 0.75 with 512 */
    const enum isa isa = c->backend->needs > ISA_BASE ? c->backend->needs : cpu_isa();

    for (int i = 0; i < t->n_peaks; i++)
        if (t->peaks[i].threads == c->threads)
            return efficiency * t->peaks[i].flops[isa] / slow_of(t);
    return 0;
}

/* What a case costs whatever its backend is. Zeros if it is too large to be mapped or not possible
 * at all: it will say so itself. */
struct cost {
    double flop, weights;
    double forward, backward; /* seconds of the reference */
    double check;             /* of a reference forward within the limit */
};

/* From a job of the ref backend: that opens no library in this process. */
static struct cost cost_of(const struct bench_case *c, const struct speeds *t)
{
    const struct reference_rates *const r = &t->reference;
    struct options opt = *c->opt;
    struct bench_case ref = *c;
    struct cost cost = {0};
    struct job j;

    if (c->unsupported) /* workloads rely on what a plan refuses */
        return cost;
    opt.impl = NULL;
    ref.opt = &opt;
    ref.backend = &backend_ref;
    if (job_open(&j, &ref, NULL) == OK && job_map(&j, NULL) == OK) {
        cost.flop = job_flop(&j);
        cost.weights = (double)j.arena.part[PART_WEIGHTS] / sizeof(float);
        cost.forward = slow_of(t) * reference_forward_s(&j, r);
        cost.backward = slow_of(t) * reference_backward_s(&j, r);
        reference_rows(&j, r, check_limit_s(c->opt), &cost.check);
        cost.check *= slow_of(t);
    }
    job_close(&j);
    return cost;
}

/* One call on the backend of the case. */
static double call_s(const struct speeds *t, const struct bench_case *c, const struct cost *cost)
{
    const double flops = flops_of(t, c);

    if (c->backend != &backend_ref && flops > 0)
        return cost->flop / flops;
    return (cost->forward + cost->backward) * t->threads / c->threads;
}

double estimate_call_s(const struct bench_case *c, const struct speeds *speeds)
{
    const struct cost cost = cost_of(c, speeds);

    return call_s(speeds, c, &cost);
}

static const double PAUSE_S = 0.002; /* before each block */

/* Start and placing. */
static double start_s(const struct speeds *t, const struct cost *cost)
{
    const double flop_of_weight = 25; /* a random number on one thread */

    return slow_of(t) *
           (t->start_s + cost->weights * flop_of_weight / (t->reference.products / t->threads));
}

/* The same, the checked call, warm-up. */
static double launch_s(const struct speeds *t, const struct bench_case *c, const struct cost *cost,
                       double call)
{
    return start_s(t, cost) + call + fmax(c->opt->warmup_ms * 1e-3, call);
}

/* The launches of a case, which share the warm-up; blocks with a pause before each. */
static double run_s(const struct speeds *t, const struct bench_case *c, const struct cost *cost,
                    double call)
{
    const struct options *o = c->opt;
    const bool is_long = call > o->max_time_s;
    const double timed = fmax(o->max_time_s, (is_long ? FEWEST_SAMPLES : INTERVAL_SAMPLES) * call);
    const int again = is_long ? 0 : case_launches(o) - 1;

    return launch_s(t, c, cost, call) + again * (start_s(t, cost) + call) +
           timed * (1 + PAUSE_S / fmax(o->block_ms * 1e-3, call));
}

double estimate_pairs_s(const struct bench_case *c, const struct speeds *t, int runs, int launches,
                        int pairs)
{
    const struct cost cost = cost_of(c, t);
    const double call = call_s(t, c, &cost);
    const double checked =
        launch_s(t, c, &cost, call) + cost.backward * t->threads / c->threads; /* gradients */

    return cost.forward + cost.backward +
           2 * runs *
               (launches * checked + pairs * (fmax(c->opt->block_ms * 1e-3, call) + PAUSE_S));
}

/* Is the case the first of its group that needs a reference made? A ref case makes its own. */
static bool pays_reference(const struct plan *p, int i)
{
    const struct bench_case *c = &p->cases[i];
    int first = i;

    if (!c->opt->check)
        return false;
    while (first > 0 && p->cases[first - 1].group == c->group)
        first--;
    for (int k = first; k < p->n && p->cases[k].group == c->group; k++) {
        const struct bench_case *other = &p->cases[k];
        if ((k < i || other->backend == &backend_ref) && case_same_problem(other, c))
            return false;
    }
    return true;
}

/* Does it cost as much as the case before it? Backends are neighbours. */
static bool same_cost(const struct plan *p, int i)
{
    const struct bench_case *a = &p->cases[i], *b = a - 1;

    return i > 0 && a->group == b->group && a->mem_kind == b->mem_kind && case_same_problem(a, b);
}

static struct case_estimate estimate_case(const struct plan *p, int i, const struct speeds *t,
                                          const struct cost *cost)
{
    const struct bench_case *c = &p->cases[i];
    struct case_estimate one = {.call = call_s(t, c, cost)};

    one.run = run_s(t, c, cost, one.call);
    if (pays_reference(p, i))
        one.reference = cost->check + cost->backward;
    if (c->opt->check && c->backend != &backend_ref)
        one.gradients = cost->backward * t->threads / c->threads;
    return one;
}

void estimate_plan(struct estimate *out, const struct plan *plan, const struct speeds *speeds,
                   bool (*done)(void *arg, const struct bench_case *c), void *arg)
{
    *out = (struct estimate){.plan = plan,
                             .cases = need_room((size_t)max_int(1, plan->n), sizeof(*out->cases))};
    struct cost cost = {0};
    for (int i = 0; i < plan->n; i++) {
        if (!same_cost(plan, i))
            cost = cost_of(&plan->cases[i], speeds);
        if (done(arg, &plan->cases[i]))
            continue;
        out->cases[i] = estimate_case(plan, i, speeds, &cost);
        out->total += case_estimate_s(&out->cases[i]);
        out->checks += out->cases[i].reference + out->cases[i].gradients;
    }
}
