/* SPDX-License-Identifier: MIT
 *
 * The run of the suites of --resume, and its expected end: each case once, ok, with its memory row
 * and all its samples. */
#pragma once

#include "program.h"
#include "sample_rows.h"
#include "tmp_folder.h"

/* Eight cases in four groups, each about 60 ms long. */
enum { CASES = 8 };
#define SLOW                                                                                       \
    "--variant shaw,xl --backend ref --workload attn --seq 4..32 --mem 0 --d-model 32 --heads 2 "  \
    "--threads 1 --max-time 0.03 --target-ci 0 --warmup-ms 0 --block-ms 2 "

static inline int rows_with(const struct rows *rows, enum table_id id, const char *case_id)
{
    const struct table *t = &tables[id];
    int n = 0;

    for (size_t i = 0; i < rows->n; i++)
        n +=
            strcmp(row_text(t, (const char *)rows->row + i * t->row_size, "case_id"), case_id) == 0;
    return n;
}

/* Each case once, ok, with its memory row and all its samples; nothing else. */
static inline void expect_complete(const char *run)
{
    struct rows latency = must_read(run, TABLE_LATENCY), memory = must_read(run, TABLE_MEMORY);
    struct rows samples = must_samples(in_folder(run));
    const struct latency_row *row = latency.row;
    int64_t total = 0;

    NUMBERS({latency.n, CASES}, {memory.n, CASES}, {count_status(&latency, "ok"), CASES});
    for (size_t i = 0; i < latency.n; i++) {
        cr_expect_eq(rows_with(&latency, TABLE_LATENCY, row[i].case_id), 1);
        cr_expect_eq(rows_with(&memory, TABLE_MEMORY, row[i].case_id), 1);
        cr_expect_eq(rows_with(&samples, TABLE_SAMPLES, row[i].case_id), row[i].samples);
        total += row[i].samples;
    }
    cr_expect_eq((int64_t)samples.n, total);
}
