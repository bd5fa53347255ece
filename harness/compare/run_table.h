/* SPDX-License-Identifier: MIT
 *
 * A run's tables as comparisons need them: which rows are the same case, which samples belong to a
 * row and which of them were taken together. */
#ifndef RUN_TABLE_H
#define RUN_TABLE_H

#include "compare.h"

/* One sample in its case's series. Samples with the same turn were run next to each other. */
struct sample_ref {
    const struct sample_row *row;
    int turn;
};
struct series {
    const struct sample_ref *ref;
    int n;
};
struct series run_series(const struct run *r, const char *case_id);

/* Exact bytes of a case's memory row, NAN where there is none. */
double run_arena_bytes(const struct run *r, const char *case_id);

/* A word of --axis. */
struct axis {
    const char *word;
    int column;        /* of latency.csv */
    bool inside_group; /* cells that differ in it are measured together */
};
enum status axis_find(struct axis *a, const char *word, struct err *e);

/* E_USAGE: which values there are instead. */
enum status axis_no_value(const struct axis *a, const char *base, const struct rows *latency,
                          const char *dir, struct err *e);

/* What identifies the rows of a table, whichever machine and build they come from: their key
 * columns as one text, without an axis where one is compared. */
struct keys {
    char **key;           /* [n] */
    const char **case_id; /* [n], in the rows */
    bool by_key;          /* the same case_id may have other weights: perplexity */
    bool *used;           /* [n] matched once */
    int n;
};
enum status keys_make(struct keys *k, enum table_id table, const struct rows *rows,
                      const struct axis *without, struct err *e);
void keys_free(struct keys *k);

/* The row of `in` that row i of `of` is the same case as: by case_id, else by key if only one has
 * it. -1 where there is none. Marks it used. */
int keys_match(struct keys *in, const struct keys *of, int i);
int keys_unused(const struct keys *k);

/* "xl layer seq=128 mem=512 hidden avx2" without what the axis says. `without` may be NULL. */
void row_label(const struct latency_row *row, const struct axis *without, char *buf, size_t size);

#endif
