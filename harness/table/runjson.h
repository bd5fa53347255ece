/* SPDX-License-Identifier: MIT
 *
 * run.json: what the run was asked to do and how it ended. --resume compares its options. */
#ifndef RUNJSON_H
#define RUNJSON_H

#include "record.h"

struct runjson {
    const char *run_id, *host_id, *started_at_utc;
    int argc;
    char **argv;
    const char *options; /* lines of "name=value", as options_canonical makes them */
};

/* Write DIR/run.json of a run that begins: no end, no exit code, no rows. */
enum status runjson_create(const char *dir, const struct runjson *r, struct err *e);

/* Add when and how it ended, and how many rows it has by enum row_status. */
enum status runjson_finish(const char *dir, const char *finished_at_utc, int exit_code,
                           const int rows[ROW_STATUS_COUNT], struct err *e);

/* The options of the run in the form they were given in, and when it started. *options is
 * malloc'ed. E_IO where the file is not a run.json that this program reads. */
enum status runjson_read(const char *dir, char **options, char started_at_utc[TEXT_SIZE],
                         struct err *e);

#endif
