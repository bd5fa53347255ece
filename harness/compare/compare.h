/* SPDX-License-Identifier: MIT
 *
 * Comparing tables on disk: two runs case by case, or the values of one axis inside a run.
 * verdict.h decides what a difference means, compare_print.h prints it. */
#pragma once

#include "harness/measure/verdict.h"
#include "harness/table/run.h"

/* Two rows that differ only in what is compared, or two programs on one case. */
struct comparison {
    char case_id[SIDES][TEXT_SIZE];
    char label[LINE_SIZE / 4]; /* what both have in common */
    char name[SIDES][TEXT_SIZE];
    int line;             /* comparisons of one line have the same base */
    struct change change; /* n == 0: times were not compared */
    double row_ns[SIDES]; /* medians of two rows, which they share with every comparison of theirs;
                             NAN: of programs, see change.median */
    double before_pct;    /* half-width of the base's own interval, in percent of its median */
    double threshold;     /* fraction */
    double arena_bytes[SIDES], instructions[SIDES], nll[SIDES]; /* NAN = unknown */
    bool exact;   /* no times: only numbers that must be equal */
    bool changed; /* an exact number differs */
    char note[LINE_SIZE];
};

struct comparisons {
    struct comparison *v;
    int n;
    int unmatched[SIDES]; /* rows that only one side has */
    /* Of these, pairs that differ in nothing but where the context is, and where that is in one. */
    int held_otherwise;
    const char *held[SIDES];
    int other_machine; /* comparisons whose times come from two machines */
};

/* A new comparison at the end, all numbers unknown. */
struct comparison *comparisons_add(struct comparisons *c);
void comparisons_free(struct comparisons *c);

/* The median time of a side in ns, as it is shown. */
double comparison_ns(const struct comparison *c, int side);

/* NLL per token that differs by less counts as the same. */
#define NLL_TOLERANCE 1e-4

/* Fill `changed` and the note from arena bytes and NLL. */
void comparison_exact(struct comparison *c);

/* Of numbers that must be equal and are not `changed`: same, or unclear where a side has none. */
enum verdict comparison_exact_verdict(const struct comparison *c);

/* Cases of two runs: matched by case_id, else by their key columns. The times come from different
 * moments and are not paired. */
void compare_runs(struct comparisons *c, const struct run *before, const struct run *after,
                  double threshold, uint64_t seed);

/* Rows of a run that differ only in `axis` (a value of --axis), each with the one of value `base`
 * (NULL: the first of the run). Blocks of one round are pairs if the axis varies inside groups.
 * E_USAGE if a value is missing or two rows cannot be distinguished. */
enum status compare_axis(struct comparisons *c, const struct run *run, const char *axis,
                         const char *base, double threshold, uint64_t seed, struct err *e);
