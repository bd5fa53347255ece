/* SPDX-License-Identifier: MIT
 *
 * The change between two rows on disk, by their samples.
 *
 * The order of samples in the file tells which are pairs: the harness writes them as they come, so
 * adjacent blocks of one round ran together. A case that was measured alone (--order given) or
 * later (--resume) has its rounds elsewhere in the file, and no pairs. */
#pragma once

#include "harness/table/run.h"
#include "verdict.h"

/* Room for the samples of two rows and for statistics over them. */
struct pairing {
    struct sample *sample[SIDES];
    struct pair *pair;
    double *work;
    bool by_cpu; /* all blocks count as preempted: CPU time is compared */
};
struct pairing pairing_open(const struct run *before, const struct run *after);
void pairing_close(struct pairing *p);

/* Between two series of samples. If `inside` is set, both are of one run, and their blocks of one
 * turn are pairs; *together is then whether there were enough of them. Otherwise, and where there
 * are too few, the samples count as taken at two moments. */
struct change pairing_change(const struct pairing *p, const struct series *before,
                             const struct series *after, bool inside, int threads, double threshold,
                             uint64_t seed, bool *together);

/* The time of a row by that clock, ns per call. */
static inline double row_ns(const struct latency_row *row, bool cpu)
{
    return cpu ? row->cpu_time_median_ns : row->median_ns;
}
