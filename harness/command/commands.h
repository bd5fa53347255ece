/* SPDX-License-Identifier: MIT
 *
 * The functions of `bench COMMAND`. Each returns its exit code. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "harness/cli/exit_code.h"
#include "harness/cli/options.h"

#include <stdio.h>

int cmd_sweep(struct options *opt);
int cmd_list(struct options *opt);
int cmd_check(struct options *opt);
int cmd_eval(struct options *opt);
int cmd_recl(struct options *opt);
int cmd_generate(struct options *opt);
int cmd_import(struct options *opt);
int cmd_rerun(struct options *opt);
int cmd_explain(struct options *opt);
int cmd_topo(struct options *opt);
int cmd_train(struct options *opt);
int cmd_study(struct options *opt);
int cmd_doctor(struct options *opt);
int cmd_compare(struct options *opt);
int cmd_gate(struct options *opt);
int cmd_baseline(struct options *opt);
int cmd_merge(struct options *opt);
int cmd_slurm(struct options *opt);
int cmd_plot(struct options *opt);
int cmd_history(struct options *opt);
int cmd_report(struct options *opt);
int cmd_export(struct options *opt);
int cmd_help(struct options *opt);
int cmd_completion(struct options *opt);
int cmd_worker(struct options *opt); /* hidden: a child */

/* bench compare OLD NEW of two runs' folders, printed on `f`. Returns the exit code. */
int compare_two(const struct options *o, const char *before, const char *after, FILE *f,
                enum format format);

#endif
