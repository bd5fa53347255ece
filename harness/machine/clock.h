/* SPDX-License-Identifier: MIT
 *
 * The clocks of a timed block, the cost of reading them, and a pause. */
#pragma once

#include "variants/base/base.h"

#include <time.h>

int64_t clock_wall_ns(void); /* monotonic; only differences mean something */

/* Any clock; CLOCK_GONE for that of a thread or process that has ended. */
enum { CLOCK_GONE = -1 };
int64_t clock_read_ns(clockid_t id);

/* Involuntary context switches of all threads of this process since it started. */
int64_t clock_switches(void);

/* Sleep; a signal does not shorten it. Returns at once for 0 or less. */
void clock_sleep_ms(double ms);

/* Time of a fixed number of cycles of the calling thread's core, about ten microseconds: the fastest of
 * three turns, so that a preemption does not count. Inverse to the clock rate at this moment. */
double clock_spin_ns(void);

/* The clocks of a team of OpenMP threads, read by its first one before and after a block.
 *
 * The CPU time of a block is that of the thread that took most. Other programs do not count in it:
 * a thread that waits for a preempted one spins for about 0.2 ms (GOMP_SPINCOUNT of
 * env_child_environment), then sleeps. The sum over threads would be their work, not the time that
 * it takes them. A thread that ends before the block does, as GNU's runtime ends those that a
 * smaller region does not need, is not counted. Without other programs the time is no less than the longest, and more by what all
 * threads sleep while they wait for each other in turn: see `doubt` in measure/verdict.h. */
struct clocks {
    int threads;
    clockid_t *id;                      /* of each thread's CPU time */
    int64_t *cpu_ns, wall_ns, switches; /* at the start */
};
struct clock_span {
    double wall_ns, cpu_ns;
    uint32_t switches;
};
/* The team is the one that the next region of `threads` threads has. */
enum status clocks_open(struct clocks *c, int threads, struct err *e);
void clocks_start(struct clocks *c);
struct clock_span clocks_stop(const struct clocks *c);
void clocks_close(struct clocks *c);

/* Properties of the monotonic clock, measured in about a millisecond. */
struct clock_facts {
    double overhead_ns;   /* of one reading */
    double resolution_ns; /* smallest step seen between two readings */
};
struct clock_facts clock_facts(void);
