/* SPDX-License-Identifier: MIT
 *
 * From options to cases. Pure: no measuring, no files, no clock; `bench list cases` prints its
 * result. A case is one row of the tables; a group is the cases of one shape, which are measured
 * together, round-robin. */
#ifndef PLAN_H
#define PLAN_H

#include "case.h"

struct plan {
    struct bench_case *cases;
    int n, groups;
    struct taken taken;
};

/* The cartesian product of the axes, filtered, deduplicated, in measuring order: groups of one
 * shape (workload, phase, seq, mem, batch, layers, widths, threads); inside a group variant, the
 * choices of the model, mem_kind, backend. What a variant cannot run is a case marked unsupported;
 * if there are no others, the plan is an error. E_USAGE or E_UNSUPPORTED with a remedy. Keeps
 * pointers into `opt`. An empty plan is not an error. */
enum status plan_make(struct plan *p, const struct options *opt, struct err *e);

/* Where --ckpt is a published model: its variant, sizes and choices, for those that were not given.
 * E_IO as published_open. */
enum status plan_published(struct options *o, struct err *e);

/* The same for options as a user wrote them: one that no case takes is an error, too. */
enum status plan_asked(struct plan *p, const struct options *opt, struct err *e);
void plan_free(struct plan *p);

/* Of --shard I/N (NULL: all): the groups whose number leaves i when it is divided by n. E_USAGE for
 * another text, and for more shards than groups (0: unknown). */
struct shard_of {
    int i, n;
};
enum status shard_read(struct shard_of *to, const char *shard, int groups, struct err *e);
/* Keep only those: whole groups, so that what is compared stays together. */
enum status plan_keep_shard(struct plan *p, const char *shard, struct err *e);

/* Leave out the unsupported cases; returns how many there were. */
int plan_drop_unsupported(struct plan *p);

enum { MAX_LOOKUP = 256 }; /* registries are shorter */

/* Is it a word that stands for several variants, "base", "all" or "family:NAME"? Is the i-th one of
 * them? */
bool is_variant_set(const char *word);
bool variant_set_has(const char *word, int i);
/* The i-th such word, in memory that the next call changes; NULL after the last. */
const char *variant_set_word(int i);
/* E_USAGE: neither a variant nor such a word. */
enum status unknown_variant(const char *word, struct err *e);

/* The variants and backends that the options name, each once, in the order given; sets stand
 * for variants, "auto" every backend that this CPU and build can use. E_USAGE for unknown names,
 * E_UNSUPPORTED for a named backend that cannot be used here. */
enum status lookup_variants(const struct variant *out[MAX_LOOKUP], int *n,
                            const struct options *opt, struct err *e);
enum status lookup_backends(const struct backend *out[MAX_LOOKUP], int *n,
                            const struct options *opt, struct err *e);

/* E_USAGE unless one of the chosen backends has --impl; rows of a backend that lacks it are
 * skipped. The reference ignores --impl, so with the reference alone a name of any backend is
 * accepted: its repro line in a table of several backends repeats --impl. */
enum status lookup_impl(const struct options *opt, struct err *e);

/* The i-th backend that a build may lack, and the remedy; NULL after the last. */
const char *optional_backend(int i, const char **repair);

/* The backend to use if only one is wanted, for weights of a type, from a list that ends in NULL:
 * the best SIMD level that is usable, else a library. */
const struct backend *lookup_fastest(const struct backend *const *list, enum elem elem);

#endif
