/* SPDX-License-Identifier: MIT
 *
 * Which rows are the same case, across machines and builds: the columns that identify it, one axis
 * of them, and a label of them for people. */
#pragma once

#include "record.h"

/* Do two rows of a table identify the same case? Columns named in `but` (NULL, or a list that ends
 * in NULL) do not count; with "variant" in it, neither do those that a variant fixes. */
bool rows_alike(const struct table *t, const void *a, const void *b, const char *const *but);

/* Are two rows of latency.csv of one variant with the same choices and kind of memory? */
bool rows_same_model(const struct latency_row *a, const struct latency_row *b);

/* The variant of a row, with the choices and the kind of memory that tell it from the other rows of
 * that variant: "NAME", "NAME CHOICE=VALUE", "NAME kv". */
void row_model_name(const struct latency_row *row, const struct rows *latency, char *buf,
                    size_t size);

/* A value of --axis. */
struct axis {
    const char *word;
    int column;        /* of latency.csv */
    bool inside_group; /* cases that differ in it are measured together */
};
/* Does the variant fix the value of this choice (harness/plan/case.h)? */
bool is_of_variant(int choice);
enum status axis_find(struct axis *a, const char *word, struct err *e);

/* E_USAGE lists the axes there are. */
enum status axis_no_value(const struct axis *a, const char *base, const struct rows *latency,
                          const char *dir, struct err *e);

/* The identity of the rows of a table, across machines and builds: their key columns as one text,
 * without the axis if one is compared. */
struct keys {
    char **key;           /* [n] */
    const char **case_id; /* [n], pointers into the rows */
    bool by_key;          /* the same case_id may have other weights: perplexity */
    bool *used;           /* [n] already matched */
    int n;
};
struct keys keys_make(enum table_id table, const struct rows *rows, const struct axis *without);
void keys_free(struct keys *k);

/* The row of `in` that is the same case as row i of `of`: by case_id, else by key if exactly one
 * has it. -1 if there is none. Marks it used. */
int keys_match(struct keys *in, const struct keys *of, int i);
int keys_unused(const struct keys *k);

/* "xl layer seq=128 mem=512 hidden avx2" without the column of the axis. `without` may be NULL. */
void row_label(const struct latency_row *row, const struct axis *without, char *buf, size_t size);
