/* SPDX-License-Identifier: MIT
 *
 * The measuring child's side of a cell: pin, bind, check, run blocks. Used through a pipe by `bench
 * cell`, after fork, or directly in this process (--isolate). */
#ifndef WORKER_H
#define WORKER_H

#include "harness/machine/pin.h"
#include "harness/measure/measure.h"
#include "job.h"

/* Everything the parent wants to know of a bound and checked cell. X(name) */
#define REPORT_TEXTS(X)                                                                            \
    X(impl)                                                                                        \
    X(gemm_from)                                                                                   \
    X(rows_from)                                                                                   \
    X(isa_used)                                                                                    \
    X(core)                                                                                        \
    X(config)                                                                                      \
    X(cpu)                                                                                         \
    X(cpus)                                                                                        \
    X(worst_at)
#define REPORT_REALS(X)                                                                            \
    X(threads_seen)                                                                                \
    X(arena_bytes)                                                                                 \
    X(predicted_bytes)                                                                             \
    X(rss_before_bytes)                                                                            \
    X(rss_peak_bytes)                                                                              \
    X(bind_ns)                                                                                     \
    X(flop)                                                                                        \
    X(bytes)                                                                                       \
    X(tokens)                                                                                      \
    X(max_abs_err)                                                                                 \
    X(max_rel_err)                                                                                 \
    X(nmse)                                                                                        \
    X(nll)                                                                                         \
    X(nll_low)                                                                                     \
    X(nll_high)                                                                                    \
    X(nll_floor)                                                                                   \
    X(tokens_scored)                                                                               \
    X(segments)                                                                                    \
    X(eval_ns)

enum { REPORT_TEXT = 256 };

struct report {
#define X(name) char name[REPORT_TEXT];
    REPORT_TEXTS(X)
#undef X
#define X(name) double name;
    REPORT_REALS(X)
#undef X
    double part_bytes[PART_COUNT];
};

/* What to do with the reference output in the shared file. */
enum role {
    ROLE_NONE,    /* --no-check */
    ROLE_MAKE,    /* size it and write this cell's output */
    ROLE_COMPARE, /* read it and compare */
};

struct worker {
    const struct bench_case *bcase;
    struct topo *topo;
    struct team team;
    struct job job;
    enum role role;
    int reference; /* file descriptor */
    struct report report;
    unsigned char *flush; /* --cache cold: swept before each timed call */
    size_t flush_bytes;
};

/* Pin the threads, open the engine, count: report.arena_bytes is known afterwards. */
enum status worker_open(struct worker *s, const struct bench_case *c, enum role role, int reference,
                        struct err *e);

/* Place, fill, run once and check. The numbers of a wrong result are in the report: the parent
 * decides. */
enum status worker_place(struct worker *s, struct err *e);

/* struct target's block function; ctx is the server. */
enum status worker_block(void *ctx, uint32_t calls, bool prime, struct sample *out, struct err *e);

/* Fill in report.rss_peak_bytes, release everything. */
void worker_close(struct worker *s);

/* Score a text under a checkpoint (score.h): the report's last seven numbers, and who computed. */
enum status worker_score(struct report *r, const struct options *opt, struct err *e);

#endif
