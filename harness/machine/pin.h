/* SPDX-License-Identifier: MIT
 *
 * What a measuring child does to itself: put every OpenMP thread in its place, and look at its own
 * resident memory. */
#ifndef PIN_H
#define PIN_H

#include "topo.h"

struct team {
    int seen;       /* threads that OpenMP really gave */
    int first_cpu;  /* of the first thread, -1 = not pinned */
    char cpus[256]; /* where they run, "0-3" */
};

/* Pin `threads` OpenMP threads by `policy` (see topo_plan), flush denormals in each, then look
 * where each one really is. The pool lives as long as the process; OpenBLAS and oneDNN run on the
 * same one. E_CHILD when a thread is not where it was put, E_UNSUPPORTED when there are fewer
 * threads. */
enum status pin_team(struct team *t, const struct topo *topo, const char *policy, int threads,
                     struct err *e);

/* This process's high-water mark of resident memory since exec. NAN where the kernel does not say.
 * Not ru_maxrss, which inherits the parent's. */
double vm_hwm_bytes(void);
/* Count it anew from what is resident now, where the kernel can. */
void vm_hwm_restart(void);

#endif
