/* SPDX-License-Identifier: MIT
 *
 * Which rows are the same case: every column counts but those of who measured, when and how it
 * went; and what is ambiguous matches nothing. */
#include "harness/table/keys.h"

#include <criterion/criterion.h>

/* A row of a case in which every key column has a value. */
static struct latency_row full_row(void)
{
    const struct table *t = &tables[TABLE_LATENCY];
    struct latency_row row = latency_row_empty();

    for (int i = 1; i < KEY_COUNT; i++) {
        char *const at = (char *)&row + t->columns[i].offset;
        const int64_t number = 7;
        if (t->columns[i].type == COLUMN_TEXT)
            strcpy(at, "word");
        else if (t->columns[i].type == COLUMN_I64)
            memcpy(at, &number, sizeof(number));
    }
    return row;
}

/* Another value of the i-th column. */
static struct latency_row other_row(int i)
{
    struct latency_row row = full_row();
    char *const at = (char *)&row + tables[TABLE_LATENCY].columns[i].offset;

    *at = (char)(*at + 1); /* of a text or of a small number */
    return row;
}

Test(row_keys, every_column_of_a_case_counts)
{
    static const char *const of_the_record[] = {
        "run_id",    "host_id",   "case_id",  "started_at_utc", "status", "status_detail", "impl",
        "gemm_from", "rows_from", "isa_used", "threads_seen",   "cpus",   "repro",         NULL};
    const struct table *t = &tables[TABLE_LATENCY];
    const struct latency_row a = full_row();

    for (int i = 1; i < KEY_COUNT; i++) {
        const struct latency_row b = other_row(i);
        const bool recorded = word_index(t->columns[i].name, of_the_record) >= 0;
        cr_expect_eq(rows_alike(t, &a, &b, NULL), recorded, "%s %s", t->columns[i].name,
                     recorded ? "counts" : "does not count");
    }
}

/* Times are no keys. */
Test(row_keys, numbers_measured_do_not_count)
{
    struct latency_row a = full_row(), b = full_row();

    a.median_ns = 1;
    b.median_ns = 2;
    cr_expect(rows_alike(&tables[TABLE_LATENCY], &a, &b, NULL));
}

static struct keys keys_of(struct latency_row *row, int n)
{
    const struct rows rows = {.row = row, .n = (size_t)n};
    struct keys k;

    k = keys_make(TABLE_LATENCY, &rows, NULL);
    return k;
}

Test(row_keys, match_by_id_then_by_a_key_that_is_alone)
{
    struct latency_row before[3] = {full_row(), full_row(), full_row()}, after[3];

    for (int i = 0; i < 3; i++)
        before[i].seq_tokens = i < 2 ? 4 : 8; /* the first two are alike */
    strcpy(before[0].case_id, "first");
    strcpy(before[1].case_id, "second");
    strcpy(before[2].case_id, "third");
    after[0] = before[1];
    after[1] = before[1];
    after[2] = before[2];
    strcpy(after[1].case_id, "of another build");
    strcpy(after[2].case_id, "of another build, too");
    struct keys in = keys_of(before, 3), of = keys_of(after, 3);
    cr_expect_eq(keys_match(&in, &of, 0), 1, "by its id, although another has the same key");
    cr_expect_eq(keys_match(&in, &of, 1), -1, "two have the key");
    cr_expect_eq(keys_unused(&in), 2);
    cr_expect_eq(keys_match(&in, &of, 2), 2);
    cr_expect_eq(keys_unused(&in), 1);
    keys_free(&in);
    keys_free(&of);
}
