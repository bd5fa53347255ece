/* SPDX-License-Identifier: MIT
 *
 * The reference that a case's output is checked against, and the rule of the check. */
#pragma once

#include "child.h"
#include "harness/table/record.h"

/* The same case on the ref backend, with its repro line: free ref->repro. `opt` is room for its
 * options. With so many threads, not pinned; 0 = placed as `c`. */
enum status case_as_ref(struct bench_case *ref, struct options *opt, const struct bench_case *c,
                        int threads, struct err *e);

/* A memory file for a reference output, unless *file is one already. */
enum status reference_open(int *file, struct err *e);

/* Fill it with the expected output of cases like this one, by a child that is not measured and runs
 * on all CPUs that are allowed. limit_s: see worker_reference. */
enum status reference_make(int *file, const struct bench_case *like,
                           const struct child_setup *setup, double limit_s, struct err *e);

/* The rule of the check: largest error against the largest magnitude, and the mean square. True,
 * with the reason, if the report of a placed case breaks it. */
bool report_is_wrong(const struct bench_case *c, const struct report *r, char detail[LINE_SIZE]);
