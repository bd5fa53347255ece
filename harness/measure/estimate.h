/* SPDX-License-Identifier: MIT
 *
 * How long the cases of a plan will take, before any of them runs: from their FLOP, the measured
 * rates of the reference and of the machine, and the options. For the first line of a sweep and for
 * its progress; nothing that is measured depends on it. */
#pragma once

#include "harness/worker/peak_child.h"

/* Speeds of this machine, per second. */
struct speeds {
    struct reference_rates reference;
    int threads;               /* of `reference` */
    double start_s;            /* that a child takes to start */
    double slow;               /* other programs make work take so many times as long; 0 = 1 */
    const struct peaks *peaks; /* [n_peaks] by number of threads; without one, other backends count
                                * as the reference */
    int n_peaks;
};

/* How many times as long work on so many threads takes beside `load` other threads that run. */
double load_slows(double load, int threads, int cpus);

/* Measure them for so many threads, in some tenths of a second; *peaks belongs to them. */
enum status speeds_measure(struct speeds *s, struct peaks *peaks, const struct child_setup *setup,
                           const struct topo *topo, const char *pin, int threads, struct err *e);

/* What usual cores of 3 GHz have that begin two multiply-adds of vectors a cycle. */
struct peaks peaks_assumed(int threads);

/* Seconds of a case. */
struct case_estimate {
    double reference; /* the reference output, if this is the case that has it made */
    double gradients; /* its expected gradients */
    double run;       /* everything else */
    double call;      /* one call */
};

struct estimate {
    const struct plan *plan;
    struct case_estimate *cases; /* [plan->n] */
    double total, checks;
};

/* Seconds that a reference may take, by the options. */
double check_limit_s(const struct options *o);

/* Cases for which done(arg, case) is true take no time. Free out->cases. */
void estimate_plan(struct estimate *out, const struct plan *plan, const struct speeds *speeds,
                   bool (*done)(void *arg, const struct bench_case *c), void *arg);

/* Of a case of that plan. */
const struct case_estimate *estimate_of(const struct estimate *t, const struct bench_case *c);
double case_estimate_s(const struct case_estimate *c);

/* Seconds of a comparison of two programs: the reference, then `runs` times `launches` checked
 * processes of each program and `pairs` pairs of blocks. */
double estimate_pairs_s(const struct bench_case *c, const struct speeds *speeds, int runs,
                        int launches, int pairs);

/* Seconds of one call of a case; 0 if it cannot be opened. */
double estimate_call_s(const struct bench_case *c, const struct speeds *speeds);
