/* SPDX-License-Identifier: MIT
 *
 * The jobs of a study: before they run how long each will take, and their list; then, in
 * study_score.c, what a job came to, for its row: the curve that its training left beside the
 * checkpoint, and the score of the checkpoint, on a text or on episodes. */
#pragma once

#include "harness/learn/study/study_jobs.h"
#include "harness/measure/session.h"

/* Seconds of each job's training, by measured rates; what cannot be measured costs precision, not
 * the study. Free *expected [plan->n] in any case. */
enum status study_estimate(double **expected, const struct session *s,
                           const struct study_plan *plan, struct err *e);

/* The difference that the study shows in four of five runs, where seeds have this standard deviation. */
void study_say_power(struct console *c, const struct study_plan *plan, double sd);

/* --dry-run: a row each on standard output. */
void study_list(const struct study_plan *plan, const double *expected, const struct options *opt);

enum status study_read_curve(struct study_row *row, const char *ckpt, struct err *e);

/* Of a text it is a row of the run's perplexity.csv, too. E_CHILD: that row says why there is none. */
enum status study_score(struct session *s, const struct study *study, const struct study_job *j,
                        struct study_row *row, const char *ckpt, struct err *e);
