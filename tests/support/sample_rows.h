/* SPDX-License-Identifier: MIT
 *
 * Raw samples with known values, written and looked for. */
#pragma once

#include "failure.h"
#include "harness/table/samples.h"

/* zst where this build has it. */
static inline enum raw best_raw(void)
{
    enum raw raw;
    const char *note;
    cr_assert_eq(raw_choose(&raw, &note, RAW_ZST, false, NULL), OK);
    cr_expect_eq(note != NULL, raw != RAW_ZST);
    return raw;
}

static inline void put_samples(struct samples *s, const char *id, int n)
{
    for (int i = 0; i < n; i++) {
        struct sample_row row = sample_row_empty();
        text_put(row.case_id, TEXT_SIZE, id);
        row.sample = i;
        row.wall_ns = 1e6 + i;
        MUST(samples_write(s, &row, &failure));
    }
}

/* Kept until the test ends. */
static inline struct rows must_samples(const char *dir)
{
    struct rows rows;

    MUST(samples_read(&rows, dir, &failure));
    kept(rows.row);
    return rows;
}

static inline void expect_samples(const char *dir, const char *const *ids, const int *n, int cases)
{
    const struct rows rows = must_samples(dir);
    size_t at = 0;

    const struct sample_row *row = rows.row;
    for (int k = 0; k < cases; k++)
        for (int i = 0; i < n[k]; i++, at++) {
            cr_assert_lt(at, rows.n, "%zu rows", rows.n);
            cr_assert_str_eq(row[at].case_id, ids[k]);
            cr_assert_eq(row[at].sample, i);
            cr_assert_eq(row[at].wall_ns, 1e6 + i);
        }
    cr_expect_eq(at, rows.n);
}
