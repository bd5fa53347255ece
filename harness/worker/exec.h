/* SPDX-License-Identifier: MIT
 *
 * Kernels that are processes (docs/kernels.md): a table of benchkernel.h whose functions send a line to
 * the process and put the arrays of the call in a file of memory that both have mapped. */
#pragma once

#include "harness/machine/clock.h"
#include "protocol.h"

#include <sys/types.h>

/* From now on this process can open them. One that ends, or answers what makes no sense, ends it too,
 * with the reason as a failure to `parent`. */
void exec_serve(struct protocol *parent);

/* What calls since the last one of this took that is not the kernel's time: copies, the way there and
 * back. The CPU time of the kernel's calling thread counts as if it were that of this one. */
struct clock_span exec_apart(void);

/* What the last call took besides the time that it said, and twice an empty one. */
double exec_hidden_ns(void);

pid_t exec_pid(void); /* the process; 0 = there is none */
