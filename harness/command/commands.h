/* SPDX-License-Identifier: MIT
 *
 * The commands behind `bench COMMAND` and the exit codes they return. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "harness/cli/options.h"

#include <stdio.h>

enum exit_code {
    EXIT_FINE = 0,
    EXIT_SOME_FAILED = 1,
    EXIT_BAD_USAGE = 2,
    EXIT_REGRESSION = 3,
    EXIT_NOT_TRUSTWORTHY = 4,
    EXIT_WRONG_NUMBERS = 5,
    EXIT_UNAVAILABLE = 6,
    EXIT_BAD_FILE = 7,
    EXIT_NOTHING_TO_DO = 77,
    EXIT_SIGINT = 130,
    EXIT_SIGTERM = 143,
};

/* The exit code that a status that reached main deserves. */
int exit_of(enum status st);

/* Print "bench: " and the message on stderr and return its exit code. */
int report_error(enum status st, const struct err *e);

int cmd_sweep(struct options *opt);
int cmd_list(struct options *opt);
int cmd_check(struct options *opt);
int cmd_eval(struct options *opt);
int cmd_rerun(struct options *opt);
int cmd_topo(struct options *opt);
int cmd_train(struct options *opt);
int cmd_doctor(struct options *opt);
int cmd_compare(struct options *opt);
int cmd_gate(struct options *opt);
int cmd_baseline(struct options *opt);
int cmd_merge(struct options *opt);
int cmd_plot(struct options *opt);
int cmd_report(struct options *opt);
int cmd_cell(struct options *opt); /* hidden: one measuring child */
int cmd_peak(struct options *opt); /* hidden: measures the machine's peaks in a child */

/* bench compare OLD NEW of two runs' folders, printed on `f`. Returns the exit code. */
int compare_two(const struct options *o, const char *before, const char *after, FILE *f,
                enum format format);

#endif
