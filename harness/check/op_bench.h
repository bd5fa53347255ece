/* SPDX-License-Identifier: MIT
 *
 * The speed of a backend's own operations beside those of the backend it inherits from. */
#ifndef OP_BENCH_H
#define OP_BENCH_H

#include "variants/backends/backend.h"

/* Time every operation that `b` provides itself, on one thread of this process, in turns with its
 * parent's, and print a line each. */
void op_bench(const struct backend *b);

#endif
