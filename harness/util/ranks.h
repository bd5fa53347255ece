/* SPDX-License-Identifier: MIT
 *
 * The processes (ranks) of one training, on one or several machines, and sums over all of them. A
 * build with MPI (make MPI=1) has ranks_mpi.c; others have ranks_none.c: one rank, whose sums are
 * its own numbers. Collective operations run in the same order on all ranks. */
#pragma once

#include "variants/base/base.h"

struct ranks {
    int index, count; /* of 0 .. count - 1; 1 rank if no launcher started several */
    int nodes;        /* machines that they are on */
    void *open;       /* sums that have begun: a list of the implementation */
};

/* The library and its version; NULL: built without. */
const char *ranks_library(void);

/* Join the others, if a launcher of MPI started this process. E_UNSUPPORTED: it did, and this
 * program was built without MPI. Threads other than the caller's may not use ranks. */
enum status ranks_open(struct ranks *r, struct err *e);
/* After the last collective call of all. */
void ranks_close(struct ranks *r);
/* One rank has failed: end all of them with this exit code. Returns if there is only one. */
void ranks_abort(const struct ranks *r, int code);

/* ---- collective ---------------------------------------------------------------------------- */

/* The sum over ranks, the same bits on each. */
void ranks_sum(const struct ranks *r, double *x, int n);
/* Is it so on any? */
bool ranks_any(const struct ranks *r, bool here);
/* Copies the bytes of rank 0 to all ranks. */
void ranks_from_first(const struct ranks *r, void *x, size_t bytes);
/* What all have, in order: all [count * bytes]. */
void ranks_gather(const struct ranks *r, const void *mine, size_t bytes, void *all);

/* Begin to add x [n] over ranks in place; x is not touched until ranks_add_end, which waits for all
 * that began. The order of additions depends on n and the number of ranks only. */
void ranks_add_begin(struct ranks *r, float *x, size_t n);
void ranks_add_poll(struct ranks *r); /* not collective: let what has begun go on */
void ranks_add_end(struct ranks *r);

/* Failed anywhere? The lowest rank that failed has its error, all others E_CHILD. */
enum status ranks_agree(const struct ranks *r, enum status st, struct err *e);
