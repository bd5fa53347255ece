/* SPDX-License-Identifier: MIT
 *
 * The learning rate of a group of a study, from the rows of its tuning jobs. */
#pragma once

#include "harness/learn/study/study_jobs.h"
#include "harness/table/record.h"

/* The last row of a job; NULL: it has none. */
const struct study_row *study_row_of(const struct rows *rows, const struct study_job *j);

/* Has it a row that stays? */
bool study_is_done(const struct rows *rows, const struct study_job *j);

/* The jobs of a group, [*n]. */
const struct study_job *study_group(const struct study_plan *p, const struct study_model *m,
                                    int *n);

struct study_rate {
    double best;     /* with the least mean validation loss among those that worked with every seed
                      * they were tried with; NAN: there is none, and */
    const char *why; /* why */
    bool open;       /* a job failed that may work later */
    double next;     /* to try next: of a search the first neighbour of the best that was not tried,
                      * below the start while nothing worked; NAN: the search has ended */
};
struct study_rate study_rate_of(const struct rows *rows, const struct study_job *job, int n);
