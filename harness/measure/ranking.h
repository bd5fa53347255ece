/* SPDX-License-Identifier: MIT
 *
 * Rankings of variants and of backends: the rows of a run in order of time, with what is known of
 * the differences. A difference is a ratio to the leader with its interval and verdict (verdict.h,
 * threshold 0); rows whose samples were not kept have only their own intervals. Ratios over pairs
 * decide who leads, not medians: what disturbs both sides of a pair cancels. A shape has one clock:
 * where one of its comparisons needs CPU time, all of them and the times shown are of CPU time. Rows
 * that are not ok take no part. No variant stands on ref where another backend ran the same case. */
#pragma once

#include "harness/table/run.h"
#include "verdict.h"

/* A variant with its choices in one shape, on its fastest backend; or a backend in one case. */
struct place {
    const struct latency_row *row; /* NULL: not measured */
    struct change change;          /* from the leader of the shape; of the leader: n = 0 */
};

struct contestant {
    char name[TEXT_SIZE]; /* the variant, and what tells it from its other rows of the run */
    struct place *place;  /* [shapes] */
    struct change change; /* from the ranking's leader, geometric mean over the shapes that all
                             contestants ran; its interval is NAN without such shapes */
    double bits;          /* bits per unit of text with its longest memory; NAN = not scored */
    double parameters;    /* in its first shape; NAN = not known */
    double joules;        /* per new token, geometric mean over the shapes that all contestants
                             ran; NAN = not read in one of them */
};

/* Cases that differ in nothing but variant, backend, seq and mem. */
struct ranking {
    struct contestant *v; /* [n] in order of time: the leader first */
    int n;
    const struct latency_row **shape; /* [shapes] a row of each */
    int shapes;
    int *leader; /* [shapes] index into v */
    bool *cpu;   /* [shapes] by CPU time */
    int common;  /* shapes that all contestants ran */
};

struct rankings {
    struct ranking *v;
    int n;
    char unit[TEXT_SIZE];   /* of contestant.bits; empty if there are none */
    char corpus[LINE_SIZE]; /* that they are of */
    double floor_bits;      /* the least that it allows; NAN if it is not generated */
};

/* Of contestant i in shape s, ns per call: of the leader the median by the shape's clock, of others
 * that times their ratio, as if all had run in the leader's blocks. NAN: not measured. */
double ranking_ns(const struct ranking *r, int i, int s);

enum ranked { RANKED_VARIANTS, RANKED_BACKENDS };

/* One ranking for each setting that has two contestants or more. For backends, a shape is a case:
 * variant, seq and mem. */
struct rankings rankings_make(const struct run *run, enum ranked what);
void rankings_free(struct rankings *r);

/* For people, `width` columns wide. */
void rankings_print(FILE *f, const struct rankings *r, enum ranked what, int width, bool color);

/* Both rankings of a run for people, each after an empty line, and the answer. */
void rankings_show(FILE *f, const struct run *run, int width, bool color);

/* The answer in a sentence or two for each ranking: what to use, how much faster it is than the
 * next, and what would decide what is undecided. */
void rankings_answer(FILE *f, const struct rankings *r, enum ranked what, int width);

/* What of the variants' networks differs and can be made alike, and how; a line, after `before`, or
 * none. */
void ranking_say_networks(FILE *f, const struct ranking *r, const char *before);

/* For programs: of each contestant a line over all shapes, then one without `mean` for each case
 * that it ran. `verdict` is of the same words as for people; of the leader "fastest", or
 * "first" where another is not shown to be slower. `few`: low and high are
 * the range of few samples. `remark` is change_remark. `clock`: wall or CPU; of a mean over both,
 * mixed. `time_ns` is ranking_ns; empty over several shapes. */
void rankings_print_csv_header(FILE *f);
void rankings_print_csv(FILE *f, const struct rankings *r, enum ranked what);
