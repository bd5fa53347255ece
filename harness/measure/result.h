/* SPDX-License-Identifier: MIT
 *
 * The result of one case, and its rows in the tables. */
#pragma once

#include "harness/machine/peak.h"
#include "harness/table/record.h"
#include "harness/worker/child.h"
#include "launches.h"
#include "measure.h"

struct result {
    const struct bench_case *bcase;
    enum row_status status;
    unsigned remarks;       /* enum remark, if it is ok */
    char detail[LINE_SIZE]; /* why it is not ok, or the remarks in words */
    char started_at_utc[TEXT_SIZE];
    struct report report;
    struct outcome outcome;
    struct summary sum;
    double clock_ratio;     /* its clock rate / the highest of the group; NAN = unknown */
    struct interval energy; /* joules of a call; NAN = unknown */
    /* Nanoseconds of runs that make several tokens (sample.h): medians over the blocks, preempted ones
     * included, because a user waits for those, too; NAN = others. */
    double first_ns, token_ns, token_p99_ns;
    struct sample *samples;
    int n;
    bool limited;      /* by a CPU quota */
    int64_t throttled; /* periods in which it stopped the blocks of the group */
    double spin_ns;    /* of the group at its highest clock rate */
};

/* The result of a case that ended with this status. */
enum row_status row_status_of(enum status st);

/* After the child's last report: statistics, and the remarks in `detail`. */
void result_finish(struct result *r);
void result_free(struct result *r);

/* Half of the 95 % interval that --target-ci is about: of the blocks, whatever their launches; in
 * percent of the median. */
double result_noise_pct(const struct result *r);

/* Is an ok row's noise far above --target-ci, or were most samples preempted? */
bool result_is_noisy(const struct result *r);

/* Peaks, caches and the time of ref: for the columns of ratios. */
struct roofline {
    const struct peaks
        *peaks; /* for the row's threads; NULL = not measured; those of a busy machine
                                * are no measure */
    const struct topo_facts *caches;
    double ref_median_ns; /* of the same problem and memory kind on ref; NAN = not in the group */
};

/* Widen the interval of a case of several launches to what those of the run's cases differ by, itself among them. */
void result_widen(struct result *r, const struct launch_noise *noise);

/* Mark an ok result that is faster than this machine can be as suspect, by more than 2 %: above the
 * peak of its instructions (weights in f32: others have no peak here), or read faster than the caches
 * that can hold what it surely reads. */
void result_judge(struct result *r, const struct roofline *y);

/* The columns that latency, memory and perplexity rows share. */
void result_key(struct key_row *row, const struct result *r, const char *run_id,
                const char *host_id);
void result_latency(struct latency_row *row, const struct result *r, const struct key_row *key,
                    const struct roofline *y);
void result_memory(struct memory_row *row, const struct result *r, const struct key_row *key);
