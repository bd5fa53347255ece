/* SPDX-License-Identifier: MIT
 *
 * Changes with their intervals: tables that `compare` and `gate` wrote with --format csv. */
#include "figure.h"

#include "harness/measure/verdict.h"

#include <csv.h>

/* ---- reading ------------------------------------------------------------------------------ */

enum change_column { C_CASE, C_BEFORE, C_AFTER, C_PCT, C_LOW, C_HIGH, C_VERDICT, C_THRESHOLD, C_N };
static const char *const change_names[C_N] = {
    "case",         "before",        "after",   "change_pct",
    "ci95_low_pct", "ci95_high_pct", "verdict", "threshold_pct",
};

struct change_reader {
    struct plot_data *d;
    int place[64]; /* enum change_column of each field, -1 = another */
    int width, field;
    char text[C_N][PLOT_TEXT];
    bool header;
};

static void on_field(void *data, size_t length, void *arg)
{
    struct change_reader *const r = arg;
    const int i = r->field++;

    if (i >= (int)ARRAY_LEN(r->place))
        return;
    if (r->header) {
        r->width = i + 1;
        r->place[i] = -1;
        for (int k = 0; k < C_N; k++)
            if (strlen(change_names[k]) == length && memcmp(change_names[k], data, length) == 0)
                r->place[i] = k;
    } else if (i < r->width && r->place[i] >= 0) {
        char *const to = r->text[r->place[i]];
        const size_t n = length < PLOT_TEXT ? length : PLOT_TEXT - 1;
        memcpy(to, data, n);
        to[n] = '\0';
    }
}

static double number(const char *text)
{
    char *end;
    const double x = strtod(text, &end);
    return end == text || *end ? NAN : x;
}

static void on_row(int end, void *arg)
{
    struct change_reader *const r = arg;
    struct plot_data *const d = r->d;

    r->field = 0;
    if (r->header) {
        r->header = false;
        return;
    }
    const struct plot_change c = {
        .pct = number(r->text[C_PCT]),
        .low = number(r->text[C_LOW]),
        .high = number(r->text[C_HIGH]),
        .threshold = number(r->text[C_THRESHOLD]),
    };
    GROW_SMALL(d->change, d->n_changes);
    struct plot_change *const more = &d->change[d->n_changes++];
    *more = c;
    snprintf(more->name, PLOT_TEXT, "%.120s: %.30s / %.30s", r->text[C_CASE], r->text[C_AFTER],
             r->text[C_BEFORE]);
    text_put(more->verdict, TEXT_SIZE, r->text[C_VERDICT]);
    memset(r->text, 0, sizeof(r->text));
}

static const char BEGIN[] = "case,before,";

/* The folder may contain other files: folders, pipes, unreadable files, and other tables. They are
 * skipped. */
bool plot_is_changes(const char *path)
{
    char begin[sizeof(BEGIN) - 1];
    struct stat s;

    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode))
        return false;
    FILE *const f = fopen(path, "rbe");
    const bool same = f && fread(begin, 1, sizeof(begin), f) == sizeof(begin) &&
                      memcmp(begin, BEGIN, sizeof(begin)) == 0;
    if (f)
        fclose(f);
    return same;
}

enum status plot_read_changes(struct plot_data *d, const char *path, struct err *e)
{
    struct change_reader r = {.d = d, .header = true};
    struct csv_parser p;
    struct bytes file;
    enum status st = OK;

    TRY(file_read(&file, path, e));
    if (csv_init(&p, CSV_STRICT | CSV_APPEND_NULL) != 0 ||
        csv_parse(&p, file.data, file.n, on_field, on_row, &r) != file.n)
        st = fail(e, E_IO, "%s is not a table of comparisons  -> write it again", path);
    csv_fini(&p, on_field, on_row, &r);
    csv_free(&p);
    free(file.data);
    return st;
}

/* ---- the figure ---------------------------------------------------------------------------- */

enum { CHANGES_MAX = 80 };

/* "changed" is not a verdict of times and comes last. */
static int verdict_style(const char *name)
{
    int n = 0;

    while (n < VERDICT_COUNT && strcmp(verdict_name[n], name) != 0)
        n++;
    return n;
}

void change_intervals(struct plot *p, const struct plot_data *d)
{
    int at = 0;

    plot_one_panel(p);
    for (int i = 0; i < d->n_changes; i++) {
        const struct plot_change *const c = &d->change[i];
        struct plot_point a = plot_point_empty();
        if (!isfinite(c->pct) || at++ >= CHANGES_MAX)
            continue;
        a.y = at - 1;
        a.x = c->pct;
        a.low = c->low;
        a.high = c->high;
        a.z = c->threshold;
        text_put(a.label, PLOT_TEXT, c->name);
        a.series = plot_name(&p->series, c->verdict, verdict_style(c->verdict));
        plot_add(p, &a);
    }
    if (at > CHANGES_MAX)
        snprintf(p->why, sizeof(p->why), "%d more comparisons are not drawn", at - CHANGES_MAX);
}
