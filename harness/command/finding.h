/* SPDX-License-Identifier: MIT
 *
 * One result of bench check, as a line of text or a row for programs. */
#ifndef FINDING_H
#define FINDING_H

#include "harness/cli/options.h"

enum finding_result { FINDING_PASSED, FINDING_FAILED, FINDING_SKIPPED };

struct finding {
    enum finding_result result;
    const char *backend, *kind; /* "golden" "operation" "case" "backend" */
    const char *subject;        /* a file's tensor, an operation, a case */
    const char *case_id;        /* of a case; NULL = none */
    double error, limit;        /* limit NAN = not compared */
    const char *detail;         /* in words */
};

/* E_USAGE for a format or column that findings do not have. */
enum status findings_check(const struct options *o, struct err *e);

/* The names of the columns, for formats that have them. */
void findings_begin(const struct options *o);

/* For people only what failed, unless -v or it could not be checked; a row of every one for
 * programs. */
void finding_print(const struct options *o, const struct finding *f);

/* Do findings go to standard output as rows? */
bool findings_are_rows(const struct options *o);

#endif
