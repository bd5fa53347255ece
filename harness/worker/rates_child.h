/* SPDX-License-Identifier: MIT
 *
 * Rates of the ref backend measured in a child: the parent of a run computes nothing. */
#ifndef RATES_CHILD_H
#define RATES_CHILD_H

#include "child.h"
#include "reference_cost.h"

/* With setup->reference_threads, in about a tenth of a second. */
enum status reference_rates_in_child(const struct child_setup *setup, struct reference_rates *out,
                                     struct err *e);

/* "rates THREADS": the answer has a line for each rate. */
extern const struct request request_rates;

#endif
