/* SPDX-License-Identifier: MIT
 *
 * The result of one timed block. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* One block: `calls` back-to-back calls of the timed function. */
struct sample {
    double wall_ns, cpu_ns; /* of the whole block; cpu of the thread that took most of it */
    uint32_t calls;
    uint32_t round;  /* filled in by measure() */
    uint32_t launch; /* number of the process, of a case that is started several times */
    uint32_t involuntary_switches; /* of the whole process during the block */
    double spin_ns;                /* of clock_spin_ns after the block; 0 = unknown */
    double energy_j;               /* of the whole machine during the block; 0 or NAN = unknown */
    /* Of runs that make several tokens; 0 = others. Time to the first, on average over runs; median
     * and 99th percentile of the time of each further one. */
    double first_ns, token_ns, token_p99_ns;
    bool disturbed; /* filled in by measure(): involuntary_switches > 0 */
};
