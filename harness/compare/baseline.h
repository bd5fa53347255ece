/* SPDX-License-Identifier: MIT
 *
 * Runs kept by name, per machine: OUT/baselines/<host_id>/NAME/ holds copies of a run's files. Wall
 * time is compared with a baseline of the same machine only. */
#pragma once

#include "harness/cli/options.h"
#include "harness/util/fileio.h"

/* Resolve a word of `compare`: a run's folder, or the name of a baseline, preferably of this
 * machine. */
enum status baseline_or_run(char path[FILE_PATH], const struct options *o, const char *word,
                            struct err *e);

/* For sweeps, before anything is measured: can --baseline be compared with and --save-baseline be
 * written on this machine? If not, *code is the exit code. */
enum status baseline_ready(const struct options *o, const char *host_id, int *code, struct err *e);

/* After the sweep, with the run's folder: save and compare as the options say. */
enum status baseline_finish(const struct options *o, const char *run, int *code, struct err *e);
