/* SPDX-License-Identifier: MIT
 *
 * The program under test ($BENCH), run as by a user: from a shell line to the exit code and
 * everything printed. */
#pragma once

#include "failure.h"
#include "harness/table/record.h"

/* A run in the background. Its shell has become the program: `pid` is bench's own. */
struct program {
    pid_t pid;
    int out, err; /* private files */
};

struct ran {
    int code;              /* exit code, or 128 + number of the signal */
    struct bytes out, err; /* NUL-ended, kept until the test ends */
};

/* Remove from the environment what options also read: BENCH_*, NO_COLOR, CI, TERM, COLUMNS.
 * Expectations must not depend on the caller's environment. */
void forget_settings(void);

/* Run a line with sh in the test's folder, or in the repository's where the test has none, without those
 * settings, so that only the line counts. In it $BENCH is the program, $SRC the repository. Dies with the test, or
 * of SIGALRM after 600 s. */
struct ran ran_of(const char *line);
#define run_shell(...) ran_of(kept_text(__VA_ARGS__))

/* run_shell of "$BENCH" and the words of a format. */
const char *bench_line(const char *words);
#define run_bench(...) ran_of(bench_line(kept_text(__VA_ARGS__)))

/* The same in the background, in a process group of its own. */
struct program start_shell(const char *line);
#define start_bench(...) start_shell(bench_line(kept_text(__VA_ARGS__)))
struct ran finish_bench(struct program *p);

/* Wait until stderr contains `text` (true), or the program has ended (false). */
bool wait_for_text(const struct program *p, const char *text);

/* Processes whose parent is `pid`; returns their number, at most max. */
int children_of(pid_t pid, pid_t *out, int max);

bool has_ended(pid_t pid);

/* Failed assertions that show what was printed. */
void expect_exit(const struct ran *r, int code);
void expect_said(const struct ran *r, const char *text); /* on stderr */

/* Run, and expect this exit code and, unless it is NULL, this text on stderr. */
struct ran line_exits(int code, const char *said, const char *line);
#define bench_exits(code, said, ...) line_exits(code, said, bench_line(kept_text(__VA_ARGS__)))
#define shell_exits(code, said, ...) line_exits(code, said, kept_text(__VA_ARGS__))

/* With exit code 0. */
#define must_bench(...) bench_exits(0, NULL, __VA_ARGS__)
#define must_shell(...) shell_exits(0, NULL, __VA_ARGS__)

/* Skip the test where one of these programs is not installed. */
void need_programs(const char *names);

/* A table of a run in the test's folder, or of any file, kept until the test ends; a failed assertion if it
 * cannot be read. */
struct rows must_read(const char *run, enum table_id id);
struct rows must_read_table(const char *path, enum table_id id);

/* Rows with this status. */
int count_status(const struct rows *latency, const char *status);

/* Options of cases that take milliseconds; a list that is given again grows. */
#define BRIEF                                                                                      \
    "--d-model 32 --heads 2 --max-time 0.003 --min-samples 3 --warmup-ms 0 --block-ms 0.5 --out "  \
    "r "
#define TINY BRIEF "--threads 1 "
