/* SPDX-License-Identifier: MIT
 *
 * Results of bench check. Children print them as they come; the parent prints the heading. */
#include "finding.h"
#include "variants/base/printable.h"

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

static void put_line(char *text, size_t size, const struct finding *f)
{
    char clean[512], error[80] = "";

    text_put(clean, sizeof(clean), f->subject);
    if (isfinite(f->limit))
        snprintf(error, sizeof(error), ": error %.3g, limit %.3g", f->error, f->limit);
    snprintf(text, size, "%-8s %-9s %s%s%s%s", result_shown[f->result], f->backend, clean, error,
             !*f->detail ? ""
             : *error    ? "; "
                         : ": ",
             f->detail);
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
        char line[FAILURE_TEXT];
        put_line(line, sizeof(line), f);
        if (f->result == FINDING_FAILED || o->verbose > 0)
            puts(line);
        return;
    }
    if (isfinite(f->error))
        snprintf(error, sizeof(error), "%.6g", f->error);
    if (isfinite(f->limit))
        snprintf(limit, sizeof(limit), "%.6g", f->limit);
    print_row(o, text);
}

/* ---- those that are alike ------------------------------------------------------------------- */

struct alike {
    char *group, *why;
    int n;
};

bool findings_are_counted(const struct options *o)
{
    return !findings_are_rows(o) && o->verbose == 0;
}

/* The group, why, and the line, each ended by a tab but the last. Numbers that are wrong are so for one
 * reason, whatever they are. */
void failure_text(char text[FAILURE_TEXT], const struct finding *f)
{
    char line[FAILURE_TEXT / 2], clean[FAILURE_TEXT / 2], why[512];

    put_line(line, sizeof(line), f);
    printable_copy(clean, sizeof(clean), line);
    printable_copy(why, sizeof(why), isfinite(f->limit) ? "wrong numbers" : f->detail);
    snprintf(text, FAILURE_TEXT, "%s\t%s\t%s", f->group ? f->group : "", why, clean);
}

void failure_take(struct failures *all, const char *text)
{
    const char *const why = text + strcspn(text, "\t"), *const line = strchr(why + !!*why, '\t');
    const size_t group = (size_t)(why - text), length = line ? (size_t)(line - why - 1) : 0;
    int i = 0;

    if (!line)
        return;
    while (i < all->n && (strlen(all->v[i].group) != group || strlen(all->v[i].why) != length ||
                          memcmp(all->v[i].group, text, group) != 0 ||
                          memcmp(all->v[i].why, why + 1, length) != 0))
        i++;
    if (group > 0 && i < all->n) {
        all->v[i].n++;
        return;
    }
    puts(line + 1);
    if (group == 0)
        return;
    GROW_SMALL(all->v, all->n);
    all->v[all->n++] = (struct alike){need_text("%.*s", (int)group, text),
                                      need_text("%.*s", (int)length, why + 1), 1};
}

void findings_end(const struct options *o, const struct failures *all)
{
    if (findings_are_rows(o))
        text_rows_end(stdout, (enum format)o->format);
    for (int i = 0; i < all->n; i++)
        if (all->v[i].n > 1)
            printf("%d alike: %s: %s  -> -v lists them\n", all->v[i].n, all->v[i].group,
                   all->v[i].why);
}

void failures_name(FILE *f, const struct failures *all)
{
    for (int i = 0; i < all->n; i++) {
        int n = 0, first = i;
        for (int k = all->n - 1; k >= 0; k--)
            if (strcmp(all->v[k].group, all->v[i].group) == 0) {
                n += all->v[k].n;
                first = k;
            }
        if (first == i)
            fprintf(f, "%s%s %d", i ? ", " : "; failed: ", all->v[i].group, n);
    }
}

void failures_free(struct failures *all)
{
    for (int i = 0; i < all->n; i++) {
        free(all->v[i].group);
        free(all->v[i].why);
    }
    free(all->v);
    *all = (struct failures){0};
}
