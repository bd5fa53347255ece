/* SPDX-License-Identifier: MIT
 *
 * The shapes of models that bench check runs, and which variants take each. */
#pragma once

#include "harness/plan/plan.h"

extern const char *const check_shapes[]; /* options on a line */
extern const int check_shape_count;

/* The cases of one shape with the chosen variants. What a variant does not take is left out;
 * without a choice of variants, a shape with something that none of the usual ones takes runs on
 * the first that takes it. */
struct shape {
    const char *line;
    struct options o;
    const char **fit; /* of the chosen variants, if the shape has something that others exclude */
    struct plan plan;
    enum status st;
    struct err why;
};

/* With the variants, --impl and seed that were chosen. Close in any case. */
void shape_open(struct shape *s, const struct options *chosen, const struct backend *b, int threads,
                const char *line);
void shape_close(struct shape *s);
