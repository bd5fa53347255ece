/* SPDX-License-Identifier: MIT
 *
 * The operations of a backend over awkward shapes and hostile values, each against the reference
 * within a bound that is derived from the arithmetic. One list serves the tests, `bench check` and
 * its --bench. */
#pragma once

#include "variants/backends/backend.h"

/* Names of the operations: those of OPS, products with what follows them, and attention; NULL after
 * the last. */
const char *op_case_name(int op);

/* Whether sums of `op`, enum op, are a library's; -1 = of what is made of products. Our own code
 * adds in the same order for any number of threads; a library may not, and its results for one and
 * for several threads then agree within their bounds only. */
bool library_adds(const struct engine *g, int op);

struct op_result {
    int cases, failed;
    char first[320];   /* the first failure: which case, and by how much */
    char refused[640]; /* the reason why the backend cannot run it; "" = it can */
};

/* Run every `step`-th case of operation `op` on each of the n engines g, with one thread and with
 * its own: results, guard words, and the same bits for what our own code computes alike with any
 * threads in any place. Result i is of engine i. Rounds `step` up so that every kind of every shape
 * has its turn. */
void op_check(const struct engine *g, int n, int op, int step, struct op_result *r);

/* Number of cases of an operation, and the element type of its weights. */
int op_case_count(int op);
enum elem op_case_elem(int op);

/* Time the large shapes of every operation that `b` implements itself, on one thread of this
 * process, in turns with its parent's. Prints a line for each that ran and was right. */
void op_bench(const struct backend *b);
