/* SPDX-License-Identifier: MIT
 *
 * From options to cells. Pure: no measuring, no files, no clock; `bench list cells` prints its
 * result. A cell is one row of the tables; a group is the cells of one shape, which are measured
 * together, round-robin. */
#ifndef PLAN_H
#define PLAN_H

#include "case.h"

struct plan {
    struct bench_case *cases;
    int n, groups;
};

/* The cartesian product of the axes, filtered, deduplicated, in measuring order: groups of one
 * shape (workload, phase, seq, mem, batch, layers, widths, threads), inside them variant, gate,
 * clip, rnn_cell, halt, mem_kind, backend. E_USAGE or E_UNSUPPORTED that says what to do. Keeps
 * pointers into `opt`. Zero cells is not an error here. */
enum status plan_make(struct plan *p, const struct options *opt, struct err *e);
void plan_free(struct plan *p);

enum { MAX_LOOKUP = 256 }; /* registries are shorter */

/* How many variants, from the first on, a word stands for: "base", "all"; 0 = it is no such word.
 */
int set_of_variants(const char *name);

/* The variants and backends that the options name, each once, in the order given; "all" and
 * "base" are variants, "auto" every backend that this CPU and build can use. E_USAGE for unknown
 * names, E_UNSUPPORTED for a named backend that cannot be used here. */
enum status lookup_variants(const struct variant *out[MAX_LOOKUP], int *n,
                            const struct options *opt, struct err *e);
enum status lookup_backends(const struct backend *out[MAX_LOOKUP], int *n,
                            const struct options *opt, struct err *e);

/* E_USAGE unless --impl is a name that one of the backends chosen has; where another of them lacks
 * it, that one's rows are skipped. The reference ignores --impl, so where it is alone a name of any
 * backend will do: its line in a table of several repeats it. */
enum status lookup_impl(const struct options *opt, struct err *e);

/* The i-th backend that a build may lack, and how to mend that; NULL behind the last. */
const char *optional_backend(int i, const char **mend);

/* The backend to use where only one is wanted, of a list that ends with NULL: the best SIMD level
 * that is usable, else a library. */
const struct backend *lookup_fastest(const struct backend *const *list);

#endif
