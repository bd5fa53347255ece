/* SPDX-License-Identifier: MIT
 *
 * Shared by all commands that write tables: the facts of the machine, the run's folder, the
 * controlled environment of children, warnings, and the final report. */
#pragma once

#include "console.h"
#include "group.h"
#include "harness/machine/env_row.h"
#include "harness/table/rundir.h"

struct session {
    struct options *opt;
    struct topo *topo;
    struct env_facts facts;
    struct env_ticks ticks;
    int64_t throttled; /* periods, by the start */
    struct env_row env;
    struct rundir dir;
    struct child_setup setup;
    struct console console;
    int rows[ROW_STATUS_COUNT];
    int warnings;
    const char *file_name, *file_text; /* of the run: see struct runjson */
    bool started;                      /* the run has its folder */
    bool bad_file; /* a checkpoint or a text could not be used; its row says why */
};

/* Of --resume: take the options of the run, whose command must be this one. E_USAGE, E_IO. */
enum status session_continue(struct options *o, struct err *e);

/* Inspect the machine; sets opt->default_threads. */
enum status session_open(struct session *s, struct options *opt, struct err *e);
void session_close(struct session *s);

/* Make the run's folder, or continue one (--resume); take the machine's lock; print the first
 * lines. */
enum status session_begin(struct session *s, struct err *e);

/* Write the end and close the tables. The first failure counts. */
enum status session_end(struct session *s, enum status st, struct err *e);
int session_exit_code(const struct session *s, enum status st);

/* After an interruption: print the folder and the command line that continues the run. */
void session_say_how_to_resume(const struct session *s);

/* One line on stderr, unless --quiet; counts for --strict in any case. */
void session_warn(struct session *s, const char *text);

/* Take the machine's lock, or say who has it. */
void session_lock(struct session *s);
