/* SPDX-License-Identifier: MIT
 *
 * The figure history: times of a case over several runs, by date, with the commit of each run below
 * its time. Each machine is a series of its own. */
#include "figure.h"

#include "harness/table/keys.h"

#include <stdlib.h>
#include <string.h>

enum { PANELS_MAX = 12, PANELS_ABREAST = 2 };

static const struct env_row *env_of(const struct plot_data *run)
{
    return run->table[TABLE_ENV].n > 0 ? run->table[TABLE_ENV].row : NULL;
}

static int by_date(const void *a, const void *b)
{
    const struct plot_data *const x = *(const struct plot_data *const *)a,
                                  *const y = *(const struct plot_data *const *)b;
    const struct env_row *const p = env_of(x), *const q = env_of(y);
    const int order = strcmp(p ? p->started_at_utc : "", q ? q->started_at_utc : "");

    return order ? order : (x > y) - (x < y);
}

static bool has_time(const void *row, const struct plot_data *d, const void *unused)
{
    (void)d, (void)unused;
    return ((const struct latency_row *)row)->median_ns > 0;
}

/* The cases of all runs: `runs` counts how many have each, `seen` is the last one counted. */
struct cases {
    struct picked k;
    int *runs, *seen;
};

static enum status cases_alloc(struct cases *c, size_t n, struct err *e)
{
    *c = (struct cases){
        .k = {.table = &tables[TABLE_LATENCY], .row = calloc(n + 1, sizeof(*c->k.row))},
        .runs = calloc(n + 1, sizeof(int)),
        .seen = calloc(n + 1, sizeof(int)),
    };
    return c->k.row && c->runs && c->seen
               ? OK
               : fail(e, E_NOMEM, "no memory for %zu rows of a figure  -> free some", n);
}

static void count(struct cases *c, const void *row, int run)
{
    int i = 0;

    while (i < c->k.n && !rows_alike(c->k.table, c->k.row[i], row, NULL))
        i++;
    if (i == c->k.n) {
        c->k.row[c->k.n++] = row;
        c->seen[i] = -1;
    }
    c->runs[i] += c->seen[i] != run;
    c->seen[i] = run;
}

static enum status add_run(struct plot *p, const void *wanted, int panel, const struct picked *k,
                           const struct plot_data *run, int at, struct err *e)
{
    const struct env_row *const env = env_of(run);
    enum status st = OK;

    for (int i = 0; i < k->n && st == OK; i++) {
        const struct latency_row *const row = k->row[i];
        struct plot_point a = plot_point_empty();
        if (!rows_alike(k->table, wanted, row, NULL))
            continue;
        a.source = row;
        a.row = panel;
        a.x = at;
        a.y = row->median_ns;
        a.low = row->ci95_low_ns;
        a.high = row->ci95_high_ns;
        snprintf(a.label, PLOT_TEXT, "%.5s %.7s",
                 env && strlen(env->started_at_utc) > 5 ? env->started_at_utc + 5 : "",
                 env ? env->git_commit : "");
        st = plot_name(&a.series, &p->series,
                       env && env->cpu_model[0] ? env->cpu_model : row->host_id, p->series.n, e);
        if (st == OK)
            st = plot_add(p, &a, e);
    }
    return st;
}

static enum status draw_cases(struct plot *p, const struct cases *c, const struct picked *k,
                              const struct plot_data *const *run, int n, struct err *e)
{
    enum status st = OK;
    int beyond = 0;

    for (int i = 0; i < c->k.n && st == OK; i++) {
        int panel;
        if (c->runs[i] < 2)
            continue;
        if (p->rows.n == PANELS_MAX) {
            beyond++;
            continue;
        }
        st = plot_case_panel(&panel, p, &c->k, i, e);
        for (int r = 0; r < n && st == OK; r++)
            st = add_run(p, c->k.row[i], panel, &k[r], run[r], r, e);
    }
    if (p->n == 0)
        snprintf(p->why, sizeof(p->why), "no case with a time is in two of the runs");
    else if (beyond > 0)
        snprintf(p->why, sizeof(p->why), "%d more case%s not drawn  -> select cases with --filter",
                 beyond, beyond == 1 ? " is" : "s are");
    return st;
}

enum status case_history(struct plot *p, const struct plot_data *d, struct err *e)
{
    const int n = d->n_runs;
    const struct plot_data **const run = calloc((size_t)n + 1, sizeof(const struct plot_data *));
    struct picked *const k = calloc((size_t)n + 1, sizeof(*k));
    struct cases c = {0};
    size_t rows = 0;
    int column;
    enum status st = plot_name(&column, &p->columns, "", 0, e);

    NEED(run && k);
    for (int i = 0; i < n && st == OK; i++) {
        run[i] = &d->runs[i];
        rows += run[i]->table[TABLE_LATENCY].n;
    }
    if (st == OK)
        st = cases_alloc(&c, rows, e);
    if (n > 1 && st == OK)
        qsort(run, (size_t)n, sizeof(const struct plot_data *), by_date);
    for (int r = 0; r < n && st == OK; r++) {
        st = plot_pick(&k[r], run[r], TABLE_LATENCY, has_time, NULL, e);
        for (int i = 0; i < k[r].n && st == OK; i++)
            count(&c, k[r].row[i], r);
    }
    if (st == OK)
        st = draw_cases(p, &c, k, run, n, e);
    if (n < 2)
        snprintf(p->why, sizeof(p->why), "one run only  -> bench history RUN RUN");
    if (st == OK)
        plot_wrap(p, PANELS_ABREAST);
    for (int r = 0; k && r < n; r++)
        free(k[r].row);
    free(c.k.row);
    free(c.runs);
    free(c.seen);
    free(k);
    free(run);
    return st;
}
