/* SPDX-License-Identifier: MIT
 *
 * What a job of a study came to, for its row: the curve that its training left beside the
 * checkpoint, and the score of the checkpoint, on a text or on episodes. */
#pragma once

#include "harness/learn/study/study_jobs.h"
#include "harness/measure/session.h"

enum status study_read_curve(struct study_row *row, const char *ckpt, struct err *e);

/* Of a text it is a row of the run's perplexity.csv, too. E_CHILD: that row says why there is none. */
enum status study_score(struct session *s, const struct study *study, const struct study_job *j,
                        struct study_row *row, const char *ckpt, struct err *e);
