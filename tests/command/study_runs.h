/* SPDX-License-Identifier: MIT
 *
 * Studies that are killed and continued, and what two runs of one study have in common. */
#pragma once

#include "tests/support/program.h"
#include "tests/support/words.h"

#include <signal.h>
#include <time.h>

/* A study with its options to the folder r, killed at each of these texts on stderr, and this much later each
 * time; then to its end. */
static inline void kill_and_go_on(const char *study, const char *const *moments, size_t n,
                                  long later_ms)
{
    for (size_t i = 0; i < n; i++) {
        struct program p =
            i ? start_bench("study --resume --out r") : start_bench("study %s --out r", study);
        cr_assert(wait_for_text(&p, moments[i]), "%s", moments[i]);
        nanosleep(&(struct timespec){.tv_nsec = (long)(i + 1) * later_ms * 1000000L}, NULL);
        kill(p.pid, SIGKILL);
        finish_bench(&p);
    }
    must_bench("study --resume --out r");
}

/* Columns that two runs of one study may differ in: who, when, how long, and names made of the
 * folder. */
static inline bool may_differ(const char *column)
{
    return is_word_of("run_id started_at_utc train_s cpu_pct test_case_id", column);
}

static inline int by_case(const void *a, const void *b)
{
    return strcmp(((const struct study_row *)a)->case_id, ((const struct study_row *)b)->case_id);
}

/* n each, in any order: shards have one of their own. */
static inline void expect_same_rows(const char *a, const char *b, size_t n)
{
    const struct table *const t = &tables[TABLE_STUDY];
    struct rows x = must_read(a, TABLE_STUDY), y = must_read(b, TABLE_STUDY);

    cr_assert(x.n == n && y.n == n, "%zu and %zu rows, not %zu", x.n, y.n, n);
    qsort(x.row, n, sizeof(struct study_row), by_case);
    qsort(y.row, n, sizeof(struct study_row), by_case);
    for (size_t i = 0; i < n; i++)
        for (int c = 0; c < t->n; c++) {
            char p[NUMBER_SIZE], q[NUMBER_SIZE];
            const char *const v = row_field(t, c, (const struct study_row *)x.row + i, p);
            const char *const w = row_field(t, c, (const struct study_row *)y.row + i, q);
            if (strcmp(t->columns[c].name, "cpu_pct") == 0) /* clocks of a short step are coarse */
                cr_expect(atof(v) > 0 && atof(v) < 150, "row %zu: %s", i, v);
            if (!may_differ(t->columns[c].name))
                cr_expect_str_eq(v, w, "row %zu, %s: %s and %s", i, t->columns[c].name, v, w);
        }
}
