/* SPDX-License-Identifier: MIT
 *
 * From options to cases. Pure: no measuring, no files, no clock; `bench list cases` prints its
 * result. A case is one row of the tables; a group is the cases of one shape, which are measured
 * together, round-robin. */
#pragma once

#include "case.h"
#include "lookup.h"

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
