/* SPDX-License-Identifier: MIT
 *
 * Scores of a study as one row a contender, for figures. */
#pragma once

#include "figure.h"

struct scores {
    struct plot_data data; /* of which only the scores are its own; see trained there */
    struct perplexity_row *row;
    const struct study_row **of;
};

/* Perplexities that a study trained, merged over the seeds of each contender at each size; others stay
 * as they are. Keeps pointers into `d`. */
struct scores scores_by_contender(const struct plot_data *d);
void scores_free(struct scores *s);
