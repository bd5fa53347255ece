/* SPDX-License-Identifier: MIT
 *
 * Two programs on the same cells, measured in turns: pairs of blocks (old, new) in random order
 * inside the pair, from at least two process launches a side, so that neither a slow minute nor a
 * lucky memory layout favours one. Disturbed pairs are repeated, at most to three times as many. */
#ifndef AB_RUN_H
#define AB_RUN_H

#include "compare.h"
#include "harness/measure/session.h"

struct contender {
    const char *name; /* "old", "new" */
    char path[FILE_PATH];
};

struct live {
    struct session session;
    struct plan plan;
    struct contender program[SIDES];
    int failed, wrong; /* cells */
    int skipped;       /* that a program cannot run */
};

/* What became of one cell on two sides. */
struct duel {
    struct pair *pair; /* [n] */
    int n;
    double arena_bytes[SIDES];
    enum row_status status;
    char detail[LINE_SIZE]; /* which side, and why */
};

/* Read --exec (`new` without a path is this program), look at the machine, plan. Threads are
 * `threads` where --threads was not given, 0 = as a sweep. */
enum status live_open(struct live *l, struct options *opt, int threads, struct err *e);
void live_close(struct live *l);
int live_exit_code(const struct live *l, enum status st);

/* The reference output of a cell for its duels: a file descriptor, -1 with --no-check. */
enum status live_reference(const struct live *l, const struct cell *c, int *reference,
                           struct err *e);

/* Measure `pairs` undisturbed pairs of the cell with fresh processes. `salt` tells duels of the
 * same cell apart. Not OK only when interrupted or without memory; faults of the cell are in `d`.
 */
enum status duel_run(struct duel *d, const struct live *l, const struct cell *c,
                     const struct contender *before, const struct contender *after, int reference,
                     int pairs, uint64_t salt, struct err *e);
void duel_free(struct duel *d);

/* Count a duel that did not end well, say so in the comparison's note. */
void live_account(struct live *l, struct comparison *c, const struct duel *d);

/* A new comparison for this cell. */
struct comparison *live_comparison(struct live *l, struct comparisons *c, const struct cell *cell,
                                   double threshold);

/* Every cell of the plan once: bench compare --exec. */
enum status live_compare(struct live *l, struct comparisons *c, double threshold, struct err *e);

#endif
