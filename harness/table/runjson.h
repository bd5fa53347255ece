/* SPDX-License-Identifier: MIT
 *
 * run.json: the command and options of the run, and how it ended. --resume compares its options. */
#pragma once

#include "record.h"

extern const char runjson_file[];

struct runjson {
    const char *command, *run_id, *host_id, *started_at_utc;
    int argc;
    char **argv;
    const char *options; /* lines of "name=value", made by options_canonical */
    /* A file that the run begins with, such as the description of a study; NULL = none. */
    const char *file_name, *file_text;
};

/* Write DIR/run.json at the start of a run: without end, exit code and rows. */
enum status runjson_create(const char *dir, const struct runjson *r, struct err *e);

/* Add when and how it ended, and its rows by enum row_status. */
enum status runjson_finish(const char *dir, const char *finished_at_utc, int exit_code,
                           const int rows[ROW_STATUS_COUNT], struct err *e);

/* The rows that it counted at its end, of all tables: 0 without the file, INT64_MAX if the file cannot
 * be read. */
int64_t runjson_counted(const char *dir);

/* The command that made it; of files of versions that did not write it, the one of their argv. */
enum status runjson_command(const char *dir, char command[TEXT_SIZE], struct err *e);

/* The options of the run as they were given, and its start. *options is malloc'ed. E_IO if the file
 * is not a run.json that this program reads. */
enum status runjson_read(const char *dir, char **options, char started_at_utc[TEXT_SIZE],
                         struct err *e);
