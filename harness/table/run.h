/* SPDX-License-Identifier: MIT
 *
 * A run's folder as its readers need it: all tables, the samples of each row, and which of them
 * were taken together. */
#pragma once

#include "samples.h"

struct run {
    char dir[FILE_PATH];
    union {
        struct rows table[TABLE_COUNT]; /* by enum table_id */
        struct {
            struct rows latency, memory, perplexity, env, samples, none, study;
        };
    };
    struct sample_ref *ref; /* [samples.n], by case and time */
    int unchecked;          /* rows whose results were not compared with the reference */
    bool ended;             /* it came to its end, with all rows that it counted */
};

/* Read a run, strictly: E_IO names file and line of any error. Without perplexities, samples and
 * jobs of a study it is a run, too. */
enum status run_read(struct run *r, const char *dir, struct err *e);

/* Read what a folder has of a study: its jobs, and if they are there its scores and where it ran. */
enum status run_read_study(struct run *r, const char *dir, struct err *e);
void run_free(struct run *r);

/* Keep only the rows that match every expression of --filter. E_USAGE as rows_filter. */
enum status run_filter(struct run *r, const struct names *expressions, struct err *e);

/* One of its tables, not the samples. */
enum status run_table(struct rows *out, const char *dir, enum table_id table, struct err *e);

/* A line on stderr if `n` rows of a run are doubled (struct rows). */
void run_note_doubled(const char *dir, size_t n);

/* One sample in its case's series. Samples with the same turn ran next to each other. */
struct sample_ref {
    const struct sample_row *row;
    int turn;
};
struct series {
    const struct sample_ref *ref;
    int n;
};
struct series run_series(const struct run *r, const char *case_id);

/* Exact bytes of a case's memory row, NAN if there is none. */
double run_arena_bytes(const struct run *r, const char *case_id);
