/* SPDX-License-Identifier: MIT
 *
 * The one row of env.csv: filled at the start of the run, completed as more is known. */
#pragma once

#include "env.h"
#include "peak.h"

void env_row_begin(struct env_row *row, const struct env_facts *f, const struct options *opt,
                   const char *run_id, const char *started_at_utc);
void env_row_peaks(struct env_row *row, const struct peaks *p);

/* A child's description of the library that it opened. */
void env_row_library(struct env_row *row, const char *core, const char *config);
/* `throttled`: periods in which the quota stopped the run, if there is one. */
void env_row_end(struct env_row *row, const char *finished_at_utc, int exit_code, double steal_pct,
                 int64_t throttled);
