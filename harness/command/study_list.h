/* SPDX-License-Identifier: MIT
 *
 * The jobs of a study before they run: how long each will take, and their list. */
#ifndef STUDY_LIST_H
#define STUDY_LIST_H

#include "harness/learn/study_jobs.h"
#include "harness/measure/session.h"

/* Seconds of each job's training, by measured rates; what cannot be measured costs precision, not
 * the study. Free *expected [plan->n] in any case. */
enum status study_estimate(double **expected, const struct session *s,
                           const struct study_plan *plan, struct err *e);

/* --dry-run: a row each on standard output. */
void study_list(const struct study_plan *plan, const double *expected, const struct options *opt);

#endif
