/* SPDX-License-Identifier: MIT
 *
 * The clocks of a timed block, the cost of reading them, and a pause. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>

int64_t clock_wall_ns(void); /* monotonic; only differences mean something */
int64_t clock_cpu_ns(void);  /* CPU time of the calling thread */

/* Involuntary context switches of all threads of this process since it started. */
int64_t clock_switches(void);

/* Sleep; a signal does not shorten it. Returns at once for 0 or less. */
void clock_sleep_ms(double ms);

/* Between clock_start and clock_stop, on one thread. */
struct clock_mark {
    int64_t wall_ns, cpu_ns, switches;
};
struct clock_span {
    double wall_ns, cpu_ns;
    uint32_t switches;
};
struct clock_mark clock_start(void);
struct clock_span clock_stop(const struct clock_mark *start);

/* Properties of the monotonic clock, measured in about a millisecond. */
struct clock_facts {
    double overhead_ns;   /* of one reading */
    double resolution_ns; /* smallest step seen between two readings */
};
struct clock_facts clock_facts(void);

#endif
