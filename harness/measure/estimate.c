/* SPDX-License-Identifier: MIT
 *
 * Estimates. */
#include "estimate.h"

#include <math.h>
#include <stdlib.h>

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
    return &t->of[c - t->plan->cases];
}

/* FLOP per second that kernels reach; 0 = unknown. */
static double flops_of(const struct speeds *t, const struct bench_case *c)
{
    const double efficiency = 0.3; /* of the peak, in the reference results */
    const enum isa isa = c->backend->needs > ISA_BASE ? c->backend->needs : cpu_isa();

    for (int i = 0; i < t->n_peaks; i++)
        if (t->peaks[i].threads == c->threads)
            return efficiency * t->peaks[i].flops[isa];
    return 0;
}

/* The job of a case, mapped, as if it ran on ref: that opens no library in this process. */
static enum status open_as_ref(struct job *j, struct bench_case *ref, struct options *opt,
                               const struct bench_case *c, struct err *e)
{
    *opt = *c->opt;
    opt->impl = NULL;
    *ref = *c;
    ref->backend = &backend_ref;
    ref->opt = opt;
    const enum status st = job_open(j, ref, e);
    return st == OK ? job_map(j, e) : st;
}

/* One call on the backend of the case, whose job this is. */
static double call_s(const struct speeds *t, const struct bench_case *c, const struct job *j)
{
    const double flops = flops_of(t, c);

    if (c->backend != &backend_ref && flops > 0)
        return job_flop(j) / flops;
    return (reference_forward_s(j, &t->reference) + reference_backward_s(j, &t->reference)) *
           t->threads / c->threads;
}

double estimate_call_s(const struct bench_case *c, const struct speeds *speeds)
{
    struct bench_case ref;
    struct options opt;
    struct job j;
    const double s = open_as_ref(&j, &ref, &opt, c, NULL) == OK ? call_s(speeds, c, &j) : 0;

    job_close(&j);
    return s;
}

/* Start, placing, the checked call, warm-up, and blocks with a pause before each. */
static double run_s(const struct bench_case *c, const struct job *j, double call)
{
    enum { LEAST_CALLS = 3 };
    const struct options *o = c->opt;
    const double start_s = 0.1, fill_floats_per_s = 5e7, pause_ms = 2;
    const double fill = (double)j->arena.part[PART_WEIGHTS] / sizeof(float) / fill_floats_per_s;
    const double timed = fmax(o->max_time_s, LEAST_CALLS * call);

    return start_s + fill + call + fmax(o->warmup_ms * 1e-3, call) +
           timed * (1 + pause_ms / fmax(o->block_ms, call * 1e3));
}

/* Is the case the first of its group that needs a reference made? A ref case makes its own. */
static bool pays_reference(const struct plan *p, int i)
{
    const struct bench_case *c = &p->cases[i];

    if (!c->opt->check)
        return false;
    for (int k = 0; k < p->n; k++) {
        const struct bench_case *other = &p->cases[k];
        if (other->group == c->group && case_same_problem(other, c) &&
            (k < i || other->backend == &backend_ref))
            return false;
    }
    return true;
}

/* Zeros if the case is too large to be mapped or not possible at all: it will say so itself. */
static void estimate_case(struct case_estimate *out, const struct plan *p, int i,
                          const struct speeds *t)
{
    const struct bench_case *c = &p->cases[i];
    struct bench_case ref;
    struct options opt;
    struct job j;

    if (open_as_ref(&j, &ref, &opt, c, NULL) == OK) {
        out->call = call_s(t, c, &j);
        out->run = run_s(c, &j, out->call);
        if (pays_reference(p, i)) {
            reference_rows(&j, &t->reference, check_limit_s(c->opt), &out->reference);
            out->reference += reference_backward_s(&j, &t->reference);
        }
        if (c->opt->check && c->backend != &backend_ref)
            out->gradients = reference_backward_s(&j, &t->reference) * t->threads / c->threads;
    }
    job_close(&j);
}

enum status estimate_plan(struct estimate *out, const struct plan *plan,
                          const struct speeds *speeds,
                          bool (*done)(void *arg, const struct bench_case *c), void *arg,
                          struct err *e)
{
    *out = (struct estimate){.plan = plan,
                             .of = calloc((size_t)max_int(1, plan->n), sizeof(*out->of))};
    if (!out->of)
        return fail(e, E_NOMEM, "no memory for %d estimates", plan->n);
    for (int i = 0; i < plan->n; i++) {
        if (done(arg, &plan->cases[i]))
            continue;
        estimate_case(&out->of[i], plan, i, speeds);
        out->total += case_estimate_s(&out->of[i]);
        out->checks += out->of[i].reference + out->of[i].gradients;
    }
    return OK;
}
