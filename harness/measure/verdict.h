/* SPDX-License-Identifier: MIT
 *
 * Is it faster? Pure functions from two sides' samples to a change with an interval and one word.
 * Side 0 is before (old, base), side 1 after (new). A change is d = ln(after / before): 0 is no
 * difference, and percentages are exp(d) - 1. */
#ifndef VERDICT_H
#define VERDICT_H

#include "stats.h"

enum { BEFORE, AFTER, SIDES };

enum verdict { VERDICT_SAME, VERDICT_FASTER, VERDICT_SLOWER, VERDICT_UNCLEAR, VERDICT_COUNT };
extern const char *const verdict_name[VERDICT_COUNT + 1]; /* NULL-terminated */

/* Two blocks that ran next to each other, ns per call. */
struct pair {
    double wall[SIDES], cpu[SIDES];
    bool disturbed; /* a thread of either was preempted */
};

/* The data of a change. */
enum basis {
    BASIS_PAIRS,   /* wall time of blocks that ran next to each other */
    BASIS_CPU,     /* thread CPU time of such blocks: too many were preempted */
    BASIS_MOMENTS, /* wall time from two different times: differences of the machine are part of the
                    * change */
    BASIS_COUNT
};
extern const char *const basis_name[BASIS_COUNT]; /* "pairs" "cpu" "unpaired" */

struct change {
    struct interval log;  /* d and its 95 % interval */
    double median[SIDES]; /* ns per call of what was compared */
    enum verdict verdict;
    enum basis basis;
    int n, disturbed; /* pairs (or samples of both sides), and the number of them preempted */
    bool noisy;       /* more than half preempted and no CPU time to fall back on */
};

double change_pct(double log); /* 100 (exp(d) - 1) */

/* `threshold` is a fraction, 0.05 for 5 %. slower: d is above ln(1+T) and its interval above 0;
 * faster: the mirror image; same: the whole interval is inside +-ln(1+T); unclear: anything else,
 * also an interval that is not a number. */
enum verdict verdict_of(struct interval log, double threshold);

/* d is the median over pairs of ln(after/before). Disturbed pairs are left out while at least half
 * and five remain; else a case of one thread is compared by CPU time, and others are unclear. */
enum { PAIRS_WORK = 4 }; /* doubles of work per pair */
struct change change_of_pairs(const struct pair *p, int n, int threads, double threshold,
                              uint64_t seed, double *work);

/* Unpaired samples: d = ln(median after / median before), each side resampled by itself. A side
 * with more than half of its samples disturbed makes it unclear. */
struct change change_of_samples(const struct sample *before, int n_before,
                                const struct sample *after, int n_after, double threshold,
                                uint64_t seed, double *work); /* work [3 (n_before + n_after)] */

/* From two medians with their 95 % intervals, where no samples were kept: the errors count as
 * independent. */
struct change change_of_intervals(struct interval before, struct interval after, double threshold);

/* The geometric mean of n changes with its interval, as a log; the errors count as independent.
 * Changes that are not numbers are left out. */
struct interval change_mean(const struct change *c, int n);

/* How much identical programs differ on this machine: the half-width of the interval, as a fraction
 * (0.02 = 2 %). */
double change_noise(const struct change *identical);

#endif
