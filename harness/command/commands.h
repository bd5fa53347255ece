/* SPDX-License-Identifier: MIT
 *
 * The functions of `bench COMMAND`.
 *
 * A command of several files, or that shares them with another, has a folder: check/, learn/
 * (training and scoring), list/. */
#pragma once

#include "harness/cli/exit_code.h"
#include "harness/cli/options.h"

/* main reports what a command fails with, but not that it was interrupted, and exits with the code of
 * the status: unless the command sets *code, which is EXIT_FINE. */
typedef enum status command_fn(struct options *opt, int *code, struct err *e);

command_fn cmd_sweep;
command_fn cmd_list;
command_fn cmd_check;
command_fn cmd_judge;
command_fn cmd_eval;
command_fn cmd_recl;
command_fn cmd_generate;
command_fn cmd_import;
command_fn cmd_rerun;
command_fn cmd_explain;
command_fn cmd_topo;
command_fn cmd_train;
command_fn cmd_study;
command_fn cmd_doctor;
command_fn cmd_compare;
command_fn cmd_gate;
command_fn cmd_baseline;
command_fn cmd_merge;
command_fn cmd_slurm;
command_fn cmd_plot;
command_fn cmd_history;
command_fn cmd_report;
command_fn cmd_export;
/* Of a model, --to hf and gguf. */
enum status export_model(const struct options *o, struct err *e);
command_fn cmd_help;
command_fn cmd_completion;
/* What may stand in place of the last of these words of a command line: completion.c. */
int complete(int n, char **words);
command_fn cmd_worker; /* hidden: a child */

/* bench compare OLD NEW of two runs' folders, printed on `f`. */
enum status compare_two(const struct options *o, const char *before, const char *after, FILE *f,
                        enum format format, int *code, struct err *e);

/* bench check --tokens DIR: *code is EXIT_WRONG_NUMBERS if texts were split otherwise than --golden
 * says. */
enum status check_tokens(const struct options *o, int *code, struct err *e);

/* bench list cases and --dry-run: plan, print every case on standard output and their number on
 * stderr; sets default_threads. *code: EXIT_NOTHING_TO_DO if there are none. */
enum status list_cases(struct options *opt, int *code, struct err *e);
