/* SPDX-License-Identifier: MIT
 *
 * The program with one call that fails (tests/preload/faults.c), and what must hold of every such
 * run. Tests take a sample of the calls; where FAULTS_ALL is set (scripts/soak.sh), each of them,
 * or each FAULTS_ALL-th. Memory is asked for in a thousand places of a sweep or a scoring, which
 * only scripts/soak.sh goes through. */
#pragma once

#include "program.h"
#include "sanitized.h"
#include "tmp_folder.h"

enum { FAILING_PATIENCE_S = 20 };

/* "$BENCH" with `words`, where call number `at` fails as `how` says; at = 0: none does, and the
 * number of calls is written to the file `calls`. */
static inline struct ran run_failing(const char *how, int at, const char *words)
{

    return run_shell("exec timeout -s KILL %d env LD_PRELOAD=\"${BENCH%%/*}/faults.so\" "
                     "FAULT_HOW=%s FAULT_AT=%d %s \"$BENCH\" %s",
                     FAILING_PATIENCE_S, how, at, at ? "" : "FAULT_COUNT=calls", words);
}

/* How many calls has an undisturbed run? */
static inline int count_failing(const char *how, const char *words)
{
    struct ran r = run_failing(how, 0, words);
    char path[FILE_PATH];

    expect_exit(&r, 0);
    folder_path(path, "calls");
    struct bytes text = must_load(path);
    const int n = atoi(text.data);
    cr_assert_gt(n, 0, "%s: no calls", how);
    return n;
}

/* The call to fail after call n: of a sample of about `most`, or each FAULTS_ALL-th. */
static inline int next_failing(int n, int calls, int most)
{
    const char *const all = getenv("FAULTS_ALL");

    if (all)
        return n + max_int(1, atoi(all));
    return n + (calls <= most ? 1 : (calls + most - 1) / most);
}

/* "No space left on device" of "write:ENOSPC". */
static inline const char *failing_cause(const char *how)
{
    const char *const name = strchr(how, ':') + 1;
    int number = 1;

    while (strerrorname_np(number) && strcmp(strerrorname_np(number), name) != 0)
        number++;
    return strerror(number);
}

/* Nothing was wrong with the command line or the numbers: whether the fault did no harm, cost a
 * case, or a file, the exit code says so, and so does a line; no file is said to be bad. */
static inline void expect_orderly(const struct ran *r, const char *how, int at, bool rows_say_it)
{
    cr_assert(r->code == 0 || r->code == 1 || r->code == 7, "%s %d: exit code %d: %s", how, at,
              r->code, r->err.data);
    cr_assert(r->code == 0 || (r->code == 1 && rows_say_it) || strstr(r->err.data, "bench: "),
              "%s %d: exit code %d without a message: %s", how, at, r->code, r->err.data);
    cr_assert(r->code != 7 || strstr(r->err.data, failing_cause(how)), "%s %d: another cause: %s",
              how, at, r->err.data);
}
