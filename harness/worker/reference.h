/* SPDX-License-Identifier: MIT
 *
 * Who judges a cell's output, and by which rule. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include "child.h"
#include "harness/table/record.h"

/* The same cell on the ref backend, with the option line that says so: free ref->repro. `opt` is
 * room for its options. */
enum status cell_as_ref(struct cell *ref, struct options *opt, const struct cell *c, struct err *e);

/* The rule of the check: largest error against the largest magnitude, and the mean square. True,
 * with the reason, where a placed cell's report breaks it. */
bool report_is_wrong(const struct cell *c, const struct report *r, char detail[LINE_SIZE]);

#endif
