/* SPDX-License-Identifier: MIT
 *
 * The measuring loop, independent of what is timed: warm-up, calibration of the calls per block,
 * shuffled interleaved rounds over several sides, and the rules for stopping. A side may be a child
 * behind a pipe or a function in this process. */
#pragma once

#include "harness/worker/sample.h"

#include "variants/base/base.h"

enum { MAX_LAUNCHES = 4, MAX_REPEATS = 3 };

/* Samples of a finished side with blocks longer than the time limit; INTERVAL_SAMPLES otherwise. */
enum { FEWEST_SAMPLES = 3 };

/* One thing that is measured, in one or several launches, so that no single memory layout decides.
 */
struct side {
    /* Run one uncounted call if `prime`, then `calls` timed ones, and fill wall, cpu, switches. */
    enum status (*block)(void *launch, uint32_t calls, bool prime, struct sample *out,
                         struct err *e);
    void *launch[MAX_LAUNCHES];
    int launches;
};

struct schedule {
    /* 0: each side stops by itself, by the next three rules. Else all stop together, after this
     * many rounds without a disturbed block, or as soon as that is out of reach within MAX_REPEATS
     * times as many. */
    int rounds;
    int launches; /* the sides are one of N launches, which share warm-up, time and samples; 0 = 1 */
    double max_time_s; /* per side, timed and priming calls together, warm-up not counted; a side
                        * goes beyond it for the samples below */
    int min_samples;   /* stop by interval only after this many */
    double target_ci;  /* stop when half-width of the 95 % interval / median <= this; 0.01 = 1 % */
    double block_ms, warmup_ms;
    bool interleave; /* false: one side after the other, in the order given */
    uint64_t seed;
    double gap_ms;            /* pause before a block: 2 ms, so that a sibling's threads sleep */
    const volatile int *stop; /* becomes non-zero on a signal; may be NULL */
};

enum stop_reason { STOP_CI, STOP_TIME, STOP_INTERRUPTED, STOP_FAILED, STOP_ROUNDS };
extern const char *const stop_name[]; /* "ci" "time" "interrupted" "failed" "rounds" */

/* The outcome of one side. */
struct outcome {
    enum stop_reason stop;
    enum status status; /* of a failed block */
    struct err err;
    uint32_t inner_calls; /* calls per block, fixed after calibration */
    int samples;
};

/* Called for every counted block as it ends, and once per side when it is done (sample NULL). */
typedef enum status sample_fn(void *arg, int side, const struct sample *s, const struct outcome *o,
                              struct err *e);

/* Measure n sides together.
 *
 * Warm-up runs growing blocks of every launch for warmup_ms (one longer call is enough) and fixes
 * the calls of a block so that it lasts block_ms. Then every round runs one block of every active
 * side, in an order that is a function of (seed, round), on its launches in turn: every launch of a
 * side is paired with every launch of the others. Blocks begin with a priming call unless a call
 * lasts longer than 20 blocks: there a cold start is under a percent and priming would double the
 * cost.
 *
 * A side stops by interval or by time, whichever comes first, never with fewer samples than have an
 * interval unless interrupted; FEWEST_SAMPLES if one block takes longer than the time limit. One that fails leaves the rounds and the others continue. With `rounds` a
 * block has the same number of calls on every side, and one that fails ends the rounds for all.
 * Returns OK, E_INTERRUPTED if any side was, E_NOMEM before anything ran, or at once the first
 * error of `emit`, after which unfinished sides read STOP_INTERRUPTED. `out` has n entries. */
enum status measure(const struct side *side, int n, const struct schedule *s, sample_fn *emit,
                    void *arg, struct outcome *out, struct err *e);
