/* SPDX-License-Identifier: MIT
 *
 * The folder of a run: DIR/<UTC>-<commit>[-n]/ with its tables and samples, and the link
 * DIR/latest. latency.csv lists the cases that are done: a case's samples and its memory row are
 * written before its latency row. A resumed run measures the other cases again and appends their
 * rows, which replace earlier ones. */
#pragma once

#include "harness/util/lock.h"
#include "runjson.h"
#include "samples.h"

#include <time.h>

struct id_set { /* sorted */
    char (*id)[TEXT_SIZE];
    size_t n;
};

struct rundir {
    char path[FILE_PATH];
    char run_id[TEXT_SIZE];             /* name of the folder */
    struct lock lock;                   /* one process writes */
    struct table_file table[TABLE_ENV]; /* latency, memory, perplexity */
    struct samples samples;
    /* Of a resumed run: the cases already done, and their number by enum row_status. */
    struct id_set done[TABLE_ENV];
    int had[ROW_STATUS_COUNT];
    size_t doubled;         /* rows of it that later ones replace: see struct rows */
    bool has_rows;          /* written by now, or by the run that is resumed */
    char before[TEXT_SIZE]; /* what DIR/latest pointed to, "" = nothing */
};

/* "2026-11-21T06:01:02Z" */
void utc_text(char text[TEXT_SIZE], time_t t);

/* Make the folder (and DIR, if it is missing), run.json, the four tables with their headers, the
 * samples, and point DIR/latest to it. `json`: all but its run_id. E_IO says what could not be
 * written and why; nothing is left on disk. */
enum status rundir_create(struct rundir *r, const char *out_dir, const char *commit, time_t started,
                          enum raw raw, const struct runjson *json, struct err *e);

/* Open an interrupted run to continue it: `dir`, or out_dir/latest if dir is NULL. Torn last lines
 * are cut. E_UNSUPPORTED names the process that still writes it. */
enum status rundir_resume(struct rundir *r, const char *out_dir, const char *dir, struct err *e);

/* The folder that rundir_resume would open, without changing anything in it. */
enum status rundir_find(char path[FILE_PATH], const char *out_dir, const char *dir, struct err *e);

/* Does the resumed run have this row already, a final one? table: TABLE_LATENCY or
 * TABLE_PERPLEXITY.
 */
bool rundir_done(const struct rundir *r, enum table_id table, const char *case_id);

enum status rundir_write(struct rundir *r, enum table_id table, const void *row, struct err *e);

/* Replace the one row of env.csv: at the start, and again at the end. NULL: no row yet. */
enum status rundir_env(struct rundir *r, const struct env_row *row, struct err *e);

/* Remove the folder of a run that is closed and has no row; DIR/latest points where it did. */
void rundir_remove(const struct rundir *r);

/* Close everything and let other processes write; the first error counts. Always releases. */
enum status rundir_close(struct rundir *r, struct err *e);
