/* SPDX-License-Identifier: MIT
 *
 * Curves of the trainings of a study, for the figures that follow them. */
#ifndef CURVES_H
#define CURVES_H

#include "figure.h"

#include "harness/measure/study_verdict.h"

/* What is read of a row of a training: `kinds` values over x. NAN: it has none. */
struct curve_reader {
    bool tasks; /* of studies of tasks, else of texts */
    int kinds;
    double (*x)(const struct train_row *r);
    double (*value)(const struct train_row *r, int kind);
};

/* The means over the seeds of each contender at its best rate, from the least to the most of them; a
 * row of panels for each text and size. p->why says how many lost seeds and are left out. */
enum status study_curves(struct plot *p, const struct plot_data *d, const struct study_verdicts *v,
                         const struct curve_reader *c, struct err *e);

/* Is the row of a training that they follow? */
bool study_is_followed(const struct study_row *r, const struct study_verdicts *v, bool tasks);

#endif
