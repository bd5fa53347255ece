/* SPDX-License-Identifier: MIT
 *
 * Two programs on the same cases, measured in turns: pairs of blocks (old, new) in random order
 * inside the pair, from two process launches per side, so that neither a slow minute nor a
 * favourable memory layout biases the result. Disturbed pairs are repeated, at most to three times
 * as many. */
#pragma once

#include "compare.h"
#include "harness/measure/session.h"

struct ab_side {
    const char *name;     /* "old", "new" */
    char path[FILE_PATH]; /* or a command line: see struct plain */
};

/* The old program, linked once more: what its layout does is no difference. */
enum { AGAIN = SIDES };

struct ab_run {
    struct session session;
    struct plan plan;
    struct ab_side program[SIDES + 1]; /* the last is AGAIN; no path: none was given */
    int failed, wrong;                 /* cases */
    int skipped;                       /* cases that a program cannot run */
};

/* The result of one case on two sides. */
struct ab_pairs {
    struct pair *pair; /* [n] */
    int n;
    double arena_bytes[SIDES];
    enum row_status status;
    char detail[LINE_SIZE]; /* which side, and why */
};

enum { AB_LAUNCHES = 2 }; /* processes per side */

/* "bench 0.3.0 (1a2b3c4)", as the program itself says; "" if it does not. */
void ab_side_version(const struct ab_side *p, char *buf, size_t size);

/* Read --exec (`new` without a path is this program), inspect the machine, plan; with --plain no
 * case is planned. Threads are `threads` if --threads was not given, 0 = as in a sweep. */
enum status ab_run_open(struct ab_run *l, struct options *opt, int threads, struct err *e);
void ab_run_close(struct ab_run *l);

/* Say how long the cases will take, each measured `runs` times in pairs. */
enum status ab_run_estimate(struct ab_run *l, int runs, struct err *e);
int ab_run_exit_code(const struct ab_run *l, enum status st);

/* Measure `pairs` undisturbed pairs of the case (NULL: of two command lines) with fresh processes.
 * `salt` distinguishes runs of the same case. Not OK only when interrupted or without memory; errors of the case are in `d`. */
enum status ab_pairs_run(struct ab_pairs *d, struct ab_run *l, const struct bench_case *c,
                         const struct ab_side *before, const struct ab_side *after, int reference,
                         int pairs, uint64_t salt, struct err *e);
void ab_pairs_free(struct ab_pairs *d);

/* Of --plain, the block function of struct side; the launch is a struct plain. A block is whole runs of a command line
 * by a shell, without input; what they print is dropped, each is a launch of its own. CPU time is that of all processes
 * of a run. One that fails ends the case with E_CHILD. */
struct plain {
    const char *line;
    const volatile int *stop; /* see struct schedule */
};
enum status plain_block(void *plain, uint32_t calls, bool prime, struct sample *out, struct err *e);

/* The progress line: case i of n, called so, begins. */
void ab_run_at(struct ab_run *l, int i, int n, const char *label);

/* Count a run that failed and put the reason into the comparison's note. */
void ab_run_account(struct ab_run *l, struct comparison *c, const struct ab_pairs *d);

/* A new comparison for this case, or of two command lines. */
struct comparison *ab_run_comparison(struct ab_run *l, struct comparisons *c,
                                     const struct bench_case *bcase, double threshold);

/* Every case of the plan once: bench compare --exec. */
enum status ab_run_compare(struct ab_run *l, struct comparisons *c, double threshold,
                           struct err *e);
