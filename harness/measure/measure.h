/* SPDX-License-Identifier: MIT
 *
 * Time anything, know nothing: warm-up, calibration of the calls per block, shuffled interleaved
 * rounds over several targets, and the rules for stopping. What a target is, a pipe to a child or a
 * function in this process, is its own affair. */
#ifndef MEASURE_H
#define MEASURE_H

#include "harness/worker/sample.h"

#include "variants/base/base.h"

struct target {
    /* Run one uncounted call if `prime`, then `calls` timed ones, and fill wall, cpu, switches. */
    enum status (*block)(void *ctx, uint32_t calls, bool prime, struct sample *out, struct err *e);
    void *ctx;
};

struct schedule {
    double max_time_s; /* per target, timed and priming calls together, warm-up not counted */
    int min_samples;   /* stop by interval only after this many */
    double target_ci;  /* stop when half-width of the 95 % interval / median <= this; 0.01 = 1 % */
    double block_ms, warmup_ms;
    bool interleave; /* false: one target after the other, in the order given */
    uint64_t seed;
    double gap_ms;            /* pause before a block: 2 ms, so that a sibling's threads sleep */
    const volatile int *stop; /* becomes non-zero on a signal; may be NULL */
};

enum stop_reason { STOP_CI, STOP_TIME, STOP_INTERRUPTED, STOP_FAILED };
extern const char *const stop_name[]; /* "ci" "time" "interrupted" "failed" */

/* What became of one target. */
struct outcome {
    enum stop_reason stop;
    enum status status; /* of a failed block */
    struct err err;
    uint32_t inner_calls; /* calls per block, fixed after calibration */
    int samples;
};

/* Called for every counted block as it ends, and once per target when it is done (sample NULL). */
typedef enum status sample_fn(void *arg, int target, const struct sample *s,
                              const struct outcome *o, struct err *e);

/* Measure n targets together.
 *
 * Warm-up runs growing blocks for warmup_ms (one longer call is enough) and fixes the calls of a
 * block so that it lasts block_ms. Then every round runs one block of every live target, in an
 * order that is a function of (seed, round). Blocks begin with a priming call unless a call lasts
 * longer than 20 blocks: there a cold start is under a percent and priming would double the cost.
 *
 * A target stops by interval or by time, whichever comes first, never with fewer than 3 samples
 * unless interrupted. One that fails leaves the rounds and the others go on. Returns OK,
 * E_INTERRUPTED when any target was, E_NOMEM before anything ran, or at once the first error of
 * `emit`, after which unfinished targets read STOP_INTERRUPTED. `out` has n entries. */
enum status measure(const struct target *t, int n, const struct schedule *s, sample_fn *emit,
                    void *arg, struct outcome *out, struct err *e);

#endif
