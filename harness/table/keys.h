/* SPDX-License-Identifier: MIT
 *
 * Which rows are the same case, whichever machine and build they come from: the columns that
 * identify it, one axis of them, and a label of them for people. */
#ifndef KEYS_H
#define KEYS_H

#include "record.h"

/* Key columns by what they say, lists that end with NULL; the others are sizes and how it ran. */
extern const char *const columns_of_record[]; /* who measured, when, and what became of it */

/* Do two rows of a table identify the same case? Columns named in `but` (NULL, or a list that ends
 * with NULL) do not count; with "variant" in it, those that a variant brings along do not either.
 */
bool rows_alike(const struct table *t, const void *a, const void *b, const char *const *but);

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
