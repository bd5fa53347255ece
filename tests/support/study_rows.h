/* SPDX-License-Identifier: MIT
 *
 * Rows of a study, and their verdicts. */
#pragma once

#include "failure.h"
#include "harness/measure/study_verdict.h"

enum { ROWS_MAX = 256 };

struct table_of_rows {
    struct study_row *row;
    struct rows rows;
};

static inline struct table_of_rows make_rows(void)
{
    struct table_of_rows t = {.row = room(ROWS_MAX, sizeof(struct study_row))};

    t.rows.row = t.row;
    return t;
}

static inline struct study_row *add(struct table_of_rows *t, const char *contender,
                                    const char *size, int seed, double nats)
{
    cr_assert_lt(t->rows.n, ROWS_MAX);
    struct study_row *const r = &t->row[t->rows.n++];

    *r = study_row_empty();
    text_put(r->status, TEXT_SIZE, "ok");
    text_put(r->role, TEXT_SIZE, "final");
    text_put(r->host_id, TEXT_SIZE, "host");
    text_put(r->contender, TEXT_SIZE, contender);
    text_put(r->size, TEXT_SIZE, size);
    text_put(r->corpus, LINE_SIZE, "text");
    r->baseline = strcmp(contender, "base") == 0;
    r->seed = seed;
    r->lr = 1e-3;
    r->test_nats = nats;
    return r;
}

static inline struct study_verdicts verdicts(const struct table_of_rows *t)
{
    const struct study_verdicts v = study_verdicts_make(&t->rows, 0.02);

    kept_copy(&v, sizeof(v));
    return v;
}

static inline const struct study_entry *entry(const struct study_verdicts *v, const char *contender,
                                              const char *size)
{
    for (int i = 0; i < v->n; i++)
        if (strcmp(v->v[i].row->contender, contender) == 0 && strcmp(v->v[i].row->size, size) == 0)
            return &v->v[i];
    cr_assert_fail("no %s %s", contender, size);
    return NULL;
}
