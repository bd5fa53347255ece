/* SPDX-License-Identifier: MIT
 *
 * A fake target that reports times without spending them, and a measurement of some of them with
 * everything that it recorded. */
#pragma once

#include "harness/measure/measure.h"

enum { MOST_TARGETS = 8, MOST_BLOCKS = 4000 };

/* A target whose call takes call_ns, times 1 +- noise. */
struct fake {
    double call_ns, noise;
    double first_ns; /* of the very first call, 0 = like the others */
    int slow_at;     /* block number that takes ten times as long; 0 = never */
    int fail_at;     /* block number that fails, from 1; 0 = never */
    enum status fails_with;
    int stop_at; /* block number during which the user presses Ctrl-C */
    volatile int *stop;
    int switches_every; /* every so many blocks one is preempted; 0 = never */
    uint64_t seed;
    int blocks, primed; /* what happened */
};

/* All calls of emit. */
struct diary {
    int target[MOST_BLOCKS];
    struct sample sample[MOST_BLOCKS];
    int n;
    int done[MOST_TARGETS]; /* final calls per target */
    int late;               /* samples after the final call */
    enum stop_reason why[MOST_TARGETS];
    int fail_at;    /* block at which emit itself fails, from 1; 0 = never */
    bool fail_done; /* emit fails at a final call */
};

/* One measurement and its results. */
struct bed {
    struct fake fake[MOST_TARGETS];
    struct outcome out[MOST_TARGETS];
    struct diary diary;
    struct err err;
};

/* The defaults of the command line, without the gap between blocks. */
extern const struct schedule usual_schedule;

/* Measure the first n fakes of `b`, whose zero members mean an undisturbed target. */
enum status measure_fakes(struct bed *b, int n, const struct schedule *s);
