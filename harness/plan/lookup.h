/* SPDX-License-Identifier: MIT
 *
 * From names on the command line to entries of the registries. */
#pragma once

#include "harness/cli/options.h"

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

/* A kernel from outside: can it be read, under a path that tables hold, and by a process of its own? */
enum status outside_usable(const char *path, const struct options *opt, struct err *e);

/* E_USAGE unless one of the chosen backends has --impl; rows of a backend that lacks it are
 * skipped. The reference ignores --impl, so with the reference alone a name of any backend is
 * accepted: its repro line in a table of several backends repeats --impl. */
enum status lookup_impl(const struct options *opt, struct err *e);

/* The i-th backend that a build may lack, and the remedy; NULL after the last. */
const char *optional_backend(int i, const char **repair);

/* The backend to use if only one is wanted, for weights of a type, from a list that ends in NULL:
 * the best SIMD level that is usable, else a library. */
const struct backend *lookup_fastest(const struct backend *const *list, enum elem elem);
