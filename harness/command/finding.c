/* SPDX-License-Identifier: MIT
 *
 * Results of bench check. Children print them as they come; the parent prints the heading. */
#include "finding.h"
#include "harness/util/text.h"

#include <math.h>
#include <stdio.h>

static const char *const result_name[] = {"passed", "failed", "skipped"};
static const char *const result_shown[] = {"passed", "FAILED", "skipped"};

enum { RESULT, BACKEND, KIND, WHAT, CASE_ID, ERROR, LIMIT, DETAIL, COLUMN_COUNT };
static const struct text_table_column columns[COLUMN_COUNT] = {
    [RESULT] = {.name = "result"},
    [BACKEND] = {.name = "backend"},
    [KIND] = {.name = "kind"},
    [WHAT] = {.name = "what"},
    [CASE_ID] = {.name = "case_id"},
    [ERROR] = {.name = "error", .number = true},
    [LIMIT] = {.name = "limit", .number = true},
    [DETAIL] = {.name = "detail"},
};

bool findings_are_rows(const struct options *o)
{
    return o->format != FORMAT_AUTO && o->format != FORMAT_TABLE;
}

enum status findings_check(const struct options *o, struct err *e)
{
    struct text_table s = {.column = columns, .columns = COLUMN_COUNT};

    if (o->format == FORMAT_JSON)
        return fail(e, E_USAGE,
                    "bench check has no --format json  -> use --format jsonl, one line a result");
    if (o->bench && findings_are_rows(o))
        return fail(e, E_USAGE, "--bench prints a table of its own  -> leave out --format");
    if (o->columns.n > 0 && !findings_are_rows(o))
        return fail(e, E_USAGE, "--columns chooses columns of rows  -> add --format csv");
    return text_table_select(&s, &o->columns, e);
}

/* A row, or the heading (f NULL), of the chosen columns. */
static void print_row(const struct options *o, const char *const *text)
{
    struct text_table s = {.column = columns, .columns = COLUMN_COUNT};
    struct text_table_column shown[TEXT_TABLE_COLUMNS];
    const char *field[TEXT_TABLE_COLUMNS];
    struct err e;

    CHECK(text_table_select(&s, &o->columns, &e) == OK);
    const int n = s.shown ? s.shown : COLUMN_COUNT;
    for (int k = 0; k < n; k++) {
        const int at = s.shown ? s.at[k] : k;
        shown[k] = columns[at];
        field[k] = text && text[at] ? text[at] : "";
    }
    text_row_print(stdout, (enum format)o->format, shown, text ? field : NULL, n);
}

void findings_begin(const struct options *o)
{
    if (findings_are_rows(o))
        print_row(o, NULL);
}

static void print_line(const struct finding *f)
{
    char clean[512];

    text_put(clean, sizeof(clean), f->subject);
    printf("%-8s %-9s %s", result_shown[f->result], f->backend, clean);
    if (isfinite(f->limit))
        printf(": error %.3g, limit %.3g", f->error, f->limit);
    if (*f->detail)
        printf("%s %s", isfinite(f->limit) ? ";" : ":", f->detail);
    putchar('\n');
}

void finding_print(const struct options *o, const struct finding *f)
{
    char error[32] = "", limit[32] = "";
    const char *const text[COLUMN_COUNT] = {[RESULT] = result_name[f->result],
                                            [BACKEND] = f->backend,
                                            [KIND] = f->kind,
                                            [WHAT] = f->subject,
                                            [CASE_ID] = f->case_id,
                                            [ERROR] = error,
                                            [LIMIT] = limit,
                                            [DETAIL] = f->detail};

    if (!findings_are_rows(o)) {
        if (f->result == FINDING_FAILED || o->verbose > 0)
            print_line(f);
        return;
    }
    if (isfinite(f->error))
        snprintf(error, sizeof(error), "%.6g", f->error);
    if (isfinite(f->limit))
        snprintf(limit, sizeof(limit), "%.6g", f->limit);
    print_row(o, text);
}
