/* SPDX-License-Identifier: MIT
 *
 * The figure history: times of a case over several runs, by date, with the commit of each run below
 * its time. Each machine is a series of its own. And the steps of these series. */
#include "figure.h"

#include "harness/measure/levels.h"
#include "harness/table/keys.h"

enum { PANELS_MAX = 12, PANELS_ABREAST = 2, STEP_CONFIRMED = 3 };

static int by_date(const void *a, const void *b)
{
    const struct plot_data *const x = *(const struct plot_data *const *)a,
                                  *const y = *(const struct plot_data *const *)b;
    const struct env_row *const p = plot_env(x), *const q = plot_env(y);
    const int order = strcmp(p ? p->started_at_utc : "", q ? q->started_at_utc : "");

    return order ? order : (x > y) - (x < y);
}

/* The cases of all runs: `runs` counts how many have each, `seen` is the last one counted. */
struct cases {
    struct picked k;
    int *runs, *seen;
};

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

/* "11-26 3a8c8df", below the axis */
static void run_name(char text[PLOT_TEXT], const struct plot_data *run)
{
    const struct env_row *const env = plot_env(run);

    snprintf(text, PLOT_TEXT, "%.5s %.7s",
             env && strlen(env->started_at_utc) > 5 ? env->started_at_utc + 5 : "",
             env ? env->git_commit : "");
}

/* What its CPU is called, else the host. */
static const char *machine_name(const struct plot_data *run, const struct latency_row *row)
{
    const struct env_row *const env = plot_env(run);

    return env && env->cpu_model[0] ? env->cpu_model : row->host_id;
}

static void add_run(struct plot *p, const void *wanted, int panel, const struct picked *k,
                    const struct plot_data *run, int at)
{
    for (int i = 0; i < k->n; i++) {
        const struct latency_row *const row = k->row[i];
        struct plot_point a = plot_point_empty();
        if (!rows_alike(k->table, wanted, row, NULL))
            continue;
        a.source = row;
        a.row = panel;
        a.x = at;
        plot_time(&a, row);
        run_name(a.label, run);
        a.series = plot_name(&p->series, machine_name(run, row), p->series.n);
        plot_add(p, &a);
    }
}

/* Cases that differ only in where the context is, whose default has changed. */
static const char *held_otherwise(const struct cases *c)
{
    static const char *const but[] = {"mem_kind", NULL};

    for (int i = 0; i < c->k.n; i++)
        for (int k = 0; k < i; k++)
            if (rows_alike(c->k.table, c->k.row[i], c->k.row[k], but))
                return "; some differ only in mem_kind  -> measure with one --mem-kind";
    return "";
}

static void draw_cases(struct plot *p, const struct cases *c, const struct picked *k,
                       const struct plot_data *const *run, int n)
{
    int beyond = 0;

    for (int i = 0; i < c->k.n; i++) {
        if (c->runs[i] < 2)
            continue;
        if (p->rows.n == PANELS_MAX) {
            beyond++;
            continue;
        }
        const int panel = plot_case_panel(p, &c->k, i);
        for (int r = 0; r < n; r++)
            add_run(p, c->k.row[i], panel, &k[r], run[r], r);
    }
    if (p->n == 0)
        snprintf(p->why, sizeof(p->why), "no case with a time is in two of the runs%s",
                 held_otherwise(c));
    plot_say_beyond(p, beyond, "case");
}

/* ---- all runs ------------------------------------------------------------------------------ */

/* Runs by date, the rows of each that have a time, and the cases of all. */
struct all {
    const struct plot_data **run; /* [n] */
    struct picked *k;             /* [n] */
    struct cases c;
    int n;
};

static struct all gather(const struct plot_data *d)
{
    const int n = d->n_runs;
    struct all a = {.run = need_room((size_t)n + 1, sizeof(const struct plot_data *)),
                    .k = need_room((size_t)n + 1, sizeof(*a.k)),
                    .n = n};
    size_t rows = 1;

    for (int i = 0; i < n; i++) {
        a.run[i] = &d->runs[i];
        rows += a.run[i]->table[TABLE_LATENCY].n;
    }
    a.c = (struct cases){
        .k = {.table = &tables[TABLE_LATENCY], .row = need_room(rows, sizeof(*a.c.k.row))},
        .runs = need_room(rows, sizeof(int)),
        .seen = need_room(rows, sizeof(int)),
    };
    if (n > 1)
        qsort(a.run, (size_t)n, sizeof(const struct plot_data *), by_date);
    for (int r = 0; r < n; r++) {
        a.k[r] = plot_pick(a.run[r], TABLE_LATENCY, plot_has_time, NULL);
        for (int i = 0; i < a.k[r].n; i++)
            count(&a.c, a.k[r].row[i], r);
    }
    return a;
}

static void all_free(struct all *a)
{
    for (int r = 0; r < a->n; r++)
        free(a->k[r].row);
    free(a->c.k.row);
    free(a->c.runs);
    free(a->c.seen);
    free(a->k);
    free(a->run);
}

void case_history(struct plot *p, const struct plot_data *d)
{
    struct all a = gather(d);

    plot_one_column(p);
    draw_cases(p, &a.c, a.k, a.run, a.n);
    if (d->n_runs < 2)
        snprintf(p->why, sizeof(p->why), "one run only  -> bench history RUN RUN");
    plot_wrap(p, PANELS_ABREAST);
    all_free(&a);
}

/* ---- as a table ---------------------------------------------------------------------------- */

static const struct latency_row *row_of(const struct all *a, const void *wanted, int run)
{
    for (int i = 0; i < a->k[run].n; i++)
        if (rows_alike(a->c.k.table, wanted, a->k[run].row[i], NULL))
            return a->k[run].row[i];
    return NULL;
}

/* The rows of case i on the machine of run `first`, by run [a->n], NULL where it has none; false if an
 * earlier run is of that machine, or this one has none. */
static bool machine_rows(const struct latency_row **row, const struct all *a, int i, int first)
{
    const struct latency_row *const own = row_of(a, a->c.k.row[i], first);

    for (int r = 0; own && r < a->n; r++) {
        row[r] = row_of(a, a->c.k.row[i], r);
        if (row[r] && strcmp(row[r]->host_id, own->host_id) != 0)
            row[r] = NULL;
        if (row[r] && r < first)
            return false;
    }
    return own;
}

/* One row for the case on the machine of run `first`. */
static void add_machine(struct text_table *t, const struct all *a, int i, int first)
{
    const struct latency_row *row[TEXT_TABLE_COLUMNS];
    char label[LINE_SIZE];

    if (!machine_rows(row, a, i, first))
        return;
    row_label(row[first], NULL, label, sizeof(label));
    text_table_cell(t, "%s", label);
    text_table_cell(t, "%s", machine_name(a->run[first], row[first]));
    for (int r = 0; r < a->n; r++)
        text_table_cell(t, "%s", row[r] ? units_ns(row[r]->median_ns).s : "");
}

enum status history_table(FILE *f, const struct plot_data *d, enum format format, struct err *e)
{
    struct text_table_column column[TEXT_TABLE_COLUMNS] = {{.name = "case", .least = 14},
                                                           {.name = "machine", .spare = 1}};
    char name[TEXT_TABLE_COLUMNS][PLOT_TEXT];
    struct text_table t = {.column = column, .columns = d->n_runs + 2};
    enum status st = OK;

    if (t.columns > TEXT_TABLE_COLUMNS)
        return fail(e, E_USAGE, "%d runs are too many for a table  -> name at most %d of them",
                    d->n_runs, TEXT_TABLE_COLUMNS - 2);
    struct all a = gather(d);
    for (int r = 0; r < a.n; r++) {
        run_name(name[r], a.run[r]);
        column[r + 2] = (struct text_table_column){.name = name[r], .number = true, .spare = 2};
    }
    for (int i = 0; i < a.c.k.n; i++)
        for (int first = 0; first < a.n && a.c.runs[i] > 1; first++)
            add_machine(&t, &a, i, first);
    if (t.rows == 0)
        st = fail(e, E_USAGE, "no case with a time is in two of the runs  -> name others");
    else
        text_table_print(f, &t, format);
    text_table_free(&t);
    all_free(&a);
    return st;
}

/* ---- steps --------------------------------------------------------------------------------- */

/* The times of a case on one machine. */
struct times {
    const struct latency_row **row; /* [runs] */
    double *log;                    /* [n] */
    int *run;                       /* [n], of struct all */
    int n;
};

/* Those on the machine of run `first`; none if an earlier run is of that machine. */
static void take_times(struct times *t, const struct all *a, int i, int first)
{
    t->n = 0;
    for (int r = 0, n = machine_rows(t->row, a, i, first) ? a->n : 0; r < n; r++)
        if (t->row[r]) {
            t->log[t->n] = log(t->row[r]->median_ns);
            t->run[t->n++] = r;
        }
}

static void print_commit(FILE *f, const struct plot_data *run)
{
    const struct env_row *const env = plot_env(run);

    fprintf(f, "%.12s (%.10s)", env && env->git_commit[0] ? env->git_commit : "an unknown commit",
            env ? env->started_at_utc : "");
}

static void print_step(FILE *f, const struct all *a, const struct latency_row *row,
                       const struct times *t, const struct level_step *s)
{
    const double pct = 100 * expm1(s->diff.mid);
    char label[LINE_SIZE];

    row_label(row, NULL, label, sizeof(label));
    fprintf(f, "step: %s takes %+.1f %%", label, pct);
    if (isfinite(s->diff.low))
        fprintf(f, " [%+.1f %+.1f]", 100 * expm1(s->diff.low), 100 * expm1(s->diff.high));
    fputs(" from ", f);
    print_commit(f, a->run[t->run[s->at]]);
    fputs(" on, after ", f);
    print_commit(f, a->run[t->run[s->at - 1]]);
    if (s->after < STEP_CONFIRMED)
        fprintf(f, "; seen in %d run%s  -> measure it again", s->after, s->after == 1 ? "" : "s");
    fputc('\n', f);
}

/* Is the case slower than before, for as many runs as confirm it? By its last step. */
static bool is_slower(const struct level_step *s, int n)
{
    return n > 0 && s[n - 1].diff.mid > 0 && s[n - 1].after >= STEP_CONFIRMED;
}

int history_steps(FILE *f, const struct plot_data *d)
{
    struct all a = gather(d);
    const size_t n = (size_t)a.n + 1;
    struct times t = {.row = need_room(n, sizeof(const struct latency_row *)),
                      .log = need_room(n, sizeof(*t.log)),
                      .run = need_room(n, sizeof(*t.run))};
    struct level_step *const step = need_room(n, sizeof(*step));
    int places = 0, steps = 0, slower = 0;

    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < a.c.k.n; i++)
            for (int first = 0; first < a.n; first++) {
                take_times(&t, &a, i, first);
                if (pass == 0) {
                    places += level_places(t.n);
                    continue;
                }
                const int found = level_steps(t.log, t.n, places, step);
                for (int k = 0; k < found; k++)
                    print_step(f, &a, a.c.k.row[i], &t, &step[k]);
                slower += is_slower(step, found);
                steps += found;
            }
    if (places == 0)
        fprintf(f, "steps: none looked for  -> give %d runs of a case on one machine\n",
                STEP_VALUES);
    else if (steps == 0)
        fprintf(f, "steps: none shown\n");
    free(t.row);
    free(t.log);
    free(t.run);
    free(step);
    all_free(&a);
    return slower;
}
