/* SPDX-License-Identifier: MIT
 *
 * The measuring child's side of a case: pin, bind, check, run blocks. Used through a pipe by `bench
 * worker`, after fork, or directly in this process (--isolate). */
#pragma once

#include "harness/machine/clock.h"
#include "harness/machine/energy.h"
#include "report.h"
#include "token_times.h"

/* How a child uses the reference output in the shared file. */
enum role {
    ROLE_NONE,    /* --no-check */
    ROLE_MAKE,    /* write this case's output */
    ROLE_COMPARE, /* read it and compare the rows that it has */
};

struct worker {
    const struct bench_case *bcase;
    struct topo *topo;
    bool own_topo;
    struct team team;
    struct clocks clocks;
    struct energy energy;
    struct job job;
    enum role role;
    int reference;            /* file descriptor */
    double check_s;           /* what a reference may take, 0 = no limit */
    struct checked_rows rows; /* that it has */
    struct report report;
    unsigned char *flush; /* --cache cold: swept before each timed call */
    size_t flush_bytes;
    struct token_times tokens; /* of the block that runs */
};

/* Pin the threads, open the engine, count: report.arena_bytes is known afterwards. `topo`: the
 * machine as it was before this process was pinned; NULL: look now. */
enum status worker_open(struct worker *s, const struct bench_case *c, enum role role, int reference,
                        struct topo *topo, struct err *e);

/* Place, fill, run once and check. The errors of a wrong result are in the report: the parent
 * decides. */
enum status worker_place(struct worker *s, struct err *e);

/* The same for a reference that is not measured: its output may lack rows where the exact ones take
 * longer than limit_s (0 = no limit). */
enum status worker_reference(struct worker *s, double limit_s, struct err *e);

/* The block function of struct side; the launch is the worker. */
enum status worker_block(void *ctx, uint32_t calls, bool prime, struct sample *out, struct err *e);

/* Fill in report.rss_peak_bytes, release everything. */
void worker_close(struct worker *s);
