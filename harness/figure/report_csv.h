/* SPDX-License-Identifier: MIT
 *
 * The CSV tables that the report's script reads: the rows of a run, the meanings of their columns,
 * the looks of lines, and the rankings. Independent of the page's form. */
#pragma once

#include "figure.h"

void report_print_columns(FILE *f);

/* Styles by name, so that figures of the page and of gnuplot look alike. */
void report_print_styles(FILE *f);

/* The rows that the figures are made of, so that the page is consistent. */
void report_print_rows(FILE *f, const struct plot_data *d, const struct plot_file *file);

/* The rankings of variants and backends, and in `answer` the sentences that follow from them. If the
 * run's samples cannot be read, unsampled[size] says why, else it is empty; the rows' own intervals
 * then take the place of the samples. */
void report_rank(FILE *f, FILE *answer, char *unsampled, size_t size, const struct plot_data *d);

/* The scores of a study, merged over the seeds of its contenders, whose names are the checkpoints'. */
void report_print_scores(FILE *f, const struct plot_data *d);

/* What the run's study shows, as `bench study` prints it. */
void report_judge(FILE *f, const struct plot_data *d);
