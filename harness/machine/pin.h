/* SPDX-License-Identifier: MIT
 *
 * Set-up of a measuring child: pin every OpenMP thread, and read its own resident memory. */
#pragma once

#include "topo.h"

struct team {
    int seen;       /* threads that OpenMP gave */
    int first_cpu;  /* of the first thread, -1 = not pinned */
    char cpus[256]; /* CPUs that they run on, "0-3" */
    bool mixed;     /* of several kinds */
};

/* Pin `threads` OpenMP threads by `policy` (see topo_plan), flush denormals in each, then check
 * where each one runs. The pool lives as long as the process; OpenBLAS and oneDNN use the same one.
 * E_CHILD if a thread is elsewhere, E_UNSUPPORTED if there are fewer threads. */
enum status pin_team(struct team *t, const struct topo *topo, const char *policy, int threads,
                     struct err *e);

/* The same, where `where` tells the CPU of the calling thread: topo_where, or another view. */
enum status pin_team_seen(struct team *t, const struct topo *topo, const char *policy, int threads,
                          int (*where)(const struct topo *), struct err *e);

/* This process's high-water mark of resident memory since exec. NAN if the kernel does not tell.
 * Not ru_maxrss, which inherits the parent's. */
double vm_hwm_bytes(void);
/* Restart it from what is resident now, if the kernel can. */
void vm_hwm_restart(void);
