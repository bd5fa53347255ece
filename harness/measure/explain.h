/* SPDX-License-Identifier: MIT
 *
 * How the number of a row came about, in some ten lines: what ran, the blocks, the launches, which
 * of them decides the interval, and why it is not narrower. */
#pragma once

#include "harness/table/run.h"

/* Reasons to doubt a row that is ok, or to find its interval wide. */
enum doubt {
    DOUBT_PREEMPTED = 1, /* most blocks were: they had to stay */
    DOUBT_FEW = 2,       /* too few blocks for an interval */
    DOUBT_WIDE = 4,      /* blocks scatter: time was up before --target-ci was reached */
    DOUBT_LAUNCHES = 8,  /* launches differ by more than their blocks do */
    DOUBT_ONE = 16,      /* one launch: how others differ is not known */
    DOUBT_DRIFT = 32,    /* the level moved by more than the interval */
    DOUBT_CLOCK = 64,    /* the clock rate did */
};
unsigned row_doubts(const struct run *run, const struct latency_row *row);

void explain_row(FILE *f, const struct run *run, const struct latency_row *row);
