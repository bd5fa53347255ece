/* SPDX-License-Identifier: MIT
 *
 * Runs in the formats of other programs: monitoring, test reports, harnesses. One row of the
 * table in export.c is one format; what a run has to say is gathered once for all of them.
 */
#pragma once

#include "harness/table/run.h"

/* Write the run in that format. Errors of the stream stay in it. */
enum status export_run(FILE *f, enum export_to to, const struct run *r, struct err *e);

/* The document of --format json and --to json: the environment, then a row for each case, with
 * these columns of latency.csv (n == 0: all, beside what google/benchmark's readers look for), then
 * the scores and the jobs of a study. */
enum status export_json(FILE *f, const struct run *r, const struct names *columns, struct err *e);

/* The jobs of a study as lines of figures of merit, --format fom; `ended`: as in struct run. */
void export_study_fom(FILE *f, const struct rows *study, bool ended);

/* ---- for the formats ---------------------------------------------------------------------- */

/* One number of a case: smaller is better. */
struct measure {
    const char *name; /* of the case, unique in the run */
    const char *case_id;
    const char *quantity;          /* "time" "arena" "perplexity" */
    const char *unit;              /* "ns" "bytes" "" */
    double value, low, high;       /* low and high NAN = no interval */
    const struct latency_row *row; /* NULL: a perplexity */
};

struct measures {
    struct measure *v;
    int n;
    char **name; /* [latency.n] of each row */
    int n_names;
};

typedef void export_fn(FILE *f, const struct run *r, const struct measures *m);
export_fn export_openmetrics, export_junit, export_fom;
