/* SPDX-License-Identifier: MIT
 *
 * Where the level of a history changes: one value a run, in order of time. Pure functions. */
#pragma once

#include "welch.h"

struct level_step {
    int at;            /* the first value of the new level */
    int before, after; /* values of the level before it, and of its own */
    struct interval
        diff; /* new level - old one; without ends if no values are left to tell noise */
    double p; /* of no step, corrected for all places where one might be */
};

/* Fewest values of a history: two levels and two more, which tell the noise. */
enum { STEP_VALUES = 4 };

/* The steps of x[0..n) in their order; `out` has n entries. A part of the values that differs from
 * the rest is looked for: one at the end, or two values or more in the middle. The part with the
 * largest Student's t of two means with one variance counts if its p times `tests` is below 5 %; then
 * the same inside it, before and after. `tests` is the number of parts of all histories that are
 * looked at together, so all of them, without steps, show one in fewer than 5 % of all cases
 * (Bonferroni); deviations count as normal and independent. Returns the number of steps. */
int level_steps(const double *x, int n, int tests, struct level_step *out);

/* Parts of a history of n values. */
int level_places(int n);
