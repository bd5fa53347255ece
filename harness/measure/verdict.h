/* SPDX-License-Identifier: MIT
 *
 * Is it faster? Pure functions from two sides' samples to a change with an interval and one word.
 * Side 0 is before (old, base), side 1 after (new). A change is d = ln(after / before): 0 is no
 * difference, and percentages are exp(d) - 1. */
#pragma once

#include "stats.h"

enum { BEFORE, AFTER, SIDES };

enum verdict {
    VERDICT_SAME,
    VERDICT_FASTER,
    VERDICT_SLOWER,
    VERDICT_UNCLEAR, /* two measurements that contradict each other, or none: see gate.h */
    VERDICT_UNSHOWN,
    VERDICT_PROBABLY_FASTER, /* by an interval of doubtful data */
    VERDICT_PROBABLY_SLOWER,
    VERDICT_COUNT
};
extern const char *const verdict_name[VERDICT_COUNT + 1]; /* NULL-terminated */

/* Two blocks that ran next to each other, ns per call. */
struct pair {
    double wall[SIDES], cpu[SIDES];
    bool disturbed; /* a thread of either was preempted */
    int launch;     /* of both: see struct sample */
};

/* The data of a change. */
enum basis {
    BASIS_PAIRS,       /* wall time of blocks that ran next to each other */
    BASIS_CPU,         /* CPU time of such blocks: too many were preempted */
    BASIS_MOMENTS,     /* wall time from two different times: differences of the machine are part of
                        * the change */
    BASIS_MOMENTS_CPU, /* CPU time from two different times */
    BASIS_COUNT
};
extern const char *const basis_name[BASIS_COUNT]; /* "pairs" "cpu" "unpaired" "unpaired cpu" */

struct change {
    struct interval log;  /* d and its 95 % interval; if `few`, the range of d instead */
    double doubt;         /* how far off, as a log, doubtful data may be; 0 for good data */
    double median[SIDES]; /* ns per call of what was compared */
    enum verdict verdict;
    enum basis basis;
    int n, disturbed; /* pairs (or samples of both sides), and the number of them preempted */
    bool noisy;       /* too many were preempted, and no samples tell their CPU time */
    bool few;         /* fewer than INTERVAL_SAMPLES */
};

double change_pct(double log); /* 100 (exp(d) - 1) */
bool change_by_cpu(const struct change *c);

/* Why the verdict says "probably", or what was compared: "noisy", "few samples", "CPU time", "". */
const char *change_remark(const struct change *c);

/* `threshold` is a fraction, 0.05 for 5 %. slower: d is above ln(1+T) and its interval above
 * `doubt`; probably slower: the interval is above 0 only; faster: the mirror image; same: the
 * interval, wider by `doubt` at both ends, is inside +-ln(1+T); unshown: anything else, also an interval that is
 * not a number. */
enum verdict verdict_of(struct interval log, double threshold, double doubt);

/* d is the median over pairs of ln(after/before). Disturbed pairs are left out while
 * stats_may_leave_out allows it; else CPU time is compared. That of a team lacks what its threads
 * slept while they waited for each other (machine/clock.h). A side's least wall time over CPU time
 * is an upper bound of what it lacks, reached where one block was not disturbed. So a team is
 * doubted by the factor between these bounds. Few pairs are doubted by a factor of two.
 * Of several launches the interval is wide enough for their ratios, too: see launches.h. */
enum { PAIRS_WORK = 3 }; /* doubles of work per pair */
struct change change_of_pairs(const struct pair *p, int n, int threads, double threshold,
                              double *work);

/* Unpaired samples: d = ln(median after / median before), each side resampled by itself by the
 * percentile bootstrap; by CPU time, doubted, of launches, or few as above. */
struct change change_of_samples(const struct sample *before, int n_before,
                                const struct sample *after, int n_after, int threads,
                                double threshold, uint64_t seed,
                                double *work); /* work [3 (n_before + n_after)] */

/* From two medians with their 95 % intervals, where no samples were kept: the errors count as
 * independent. `noisy`: most samples of either were preempted. */
struct change change_of_intervals(struct interval before, struct interval after, bool noisy,
                                  double threshold);

/* The geometric mean of n changes; the errors count as independent, doubts do not: they may all
 * have one sign. Changes that are not numbers are left out. */
struct change change_mean(const struct change *c, int n, double threshold);

/* How much identical programs differ on this machine: the half-width of the interval, as a fraction
 * (0.02 = 2 %). */
double change_noise(const struct change *identical);
