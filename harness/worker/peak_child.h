/* SPDX-License-Identifier: MIT
 *
 * Measuring peaks, and rates of the ref backend, in a child: the parent of a run computes nothing,
 * so that its thread pool cannot disturb a measurement. */
#pragma once

#include "child.h"
#include "harness/machine/peak.h"
#include "reference_cost.h"

/* "peaks --threads N --pin CPUS --max-isa ISA --max-time S": the answer has a line for each number.
 */
extern const struct request request_peaks;

/* Instruction sets above `most` are left out; cpus [threads], -1 = not pinned. */
enum status peaks_measure(const struct child_setup *setup, int threads, const int *cpus,
                          enum isa most, double seconds, struct peaks *out, struct err *e);

/* With setup->reference_threads, in about a tenth of a second. */
enum status reference_rates_in_child(const struct child_setup *setup, struct reference_rates *out,
                                     struct err *e);

/* "rates THREADS": the answer has a line for each rate. */
extern const struct request request_rates;
