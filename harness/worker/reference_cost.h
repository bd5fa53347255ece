/* SPDX-License-Identifier: MIT
 *
 * What a reference output costs in seconds, and how many of its rows a time allows. */
#pragma once

#include "job.h"

/* FLOP per second of the ref backend with so many threads. */
struct reference_rates {
    double products, attention, backward;
    double spent_s; /* by measuring them */
};

/* Measure them in this process, in about a tenth of a second. */
enum status reference_rates_measure(struct reference_rates *out, int threads, struct err *e);

/* Rates that nearly every machine exceeds: a case that is quick at these needs no measured ones. */
extern const struct reference_rates reference_rates_least;

/* May a reference leave rows out? Otherwise no rates are needed to choose them. */
bool reference_may_sample(const struct job *j, double limit_s);

/* Seconds of a forward pass of a job that is open, and of its backward pass (0 without one). */
double reference_forward_s(const struct job *j, const struct reference_rates *r);
double reference_backward_s(const struct job *j, const struct reference_rates *r);

/* Rows of each sequence that a reference output may have within `limit_s`, 0 = no limit: all that
 * fit, at least 64, and all where no others can be left out. *cost_s is what it takes. */
int reference_rows(const struct job *j, const struct reference_rates *r, double limit_s,
                   double *cost_s);
