/* SPDX-License-Identifier: MIT
 *
 * One result of bench check, as a line of text or a row for programs. Of failures that are alike people
 * see the first, and how many there are. */
#pragma once

#include "harness/cli/options.h"

enum finding_result { FINDING_PASSED, FINDING_FAILED, FINDING_SKIPPED };

struct finding {
    enum finding_result result;
    const char *backend, *kind; /* "golden" "operation" "case" "backend" */
    const char *subject;        /* a file's tensor, an operation, a case */
    const char *case_id;        /* of a case; NULL = none */
    double error, limit;        /* limit NAN = not compared */
    const char *detail;         /* in words */
    const char *group; /* "xl layer": its failures for one reason are alike; NULL = none are */
};

/* Failures by what failed and why. */
struct failures {
    struct alike *v;
    int n;
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

/* Are those that are alike counted, in place of a line each? */
bool findings_are_counted(const struct options *o);

/* A failure on one line, and what becomes of it: it is printed, or only counted. */
enum { FAILURE_TEXT = 4096 };
void failure_text(char text[FAILURE_TEXT], const struct finding *f);
void failure_take(struct failures *all, const char *text);

/* After the last finding: the end of the rows, or how many are alike. */
void findings_end(const struct options *o, const struct failures *all);

/* "; failed: xl layer 12, shaw decode 2" */
void failures_name(FILE *f, const struct failures *all);
void failures_free(struct failures *all);
