/* SPDX-License-Identifier: MIT
 *
 * The rows of figures as a run, with the samples of its folder: what rankings are made of. */
#pragma once

#include "figure.h"

#include "harness/table/run.h"

struct plot_run {
    struct run run;                 /* the rows of the figures: those that --filter left */
    char unsampled[PAGE_TEXT_SIZE]; /* why there are no samples; empty if there are some */
    struct run read;                /* private */
};

/* Keeps pointers into `d`. */
void plot_run_open(struct plot_run *r, const struct plot_data *d);
void plot_run_close(struct plot_run *r);

/* Print the rankings of these rows on stderr, for people: stdout has the names of files. */
void plot_run_rank(const struct plot_data *d, bool color);
