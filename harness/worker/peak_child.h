/* SPDX-License-Identifier: MIT
 *
 * Measuring peaks in a child: the parent computes nothing, so that its thread pool cannot disturb a
 * measurement. */
#ifndef PEAK_CHILD_H
#define PEAK_CHILD_H

#include "child.h"
#include "harness/machine/peak.h"

/* "peaks --threads N --pin CPUS --max-isa ISA --max-time S": the answer has a line for each number.
 */
extern const struct request request_peaks;

/* Instruction sets above `most` are left out; cpus [threads], -1 = not pinned. */
enum status peaks_measure(const struct child_setup *setup, int threads, const int *cpus,
                          enum isa most, double seconds, struct peaks *out, struct err *e);

#endif
