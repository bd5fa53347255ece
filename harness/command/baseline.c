/* SPDX-License-Identifier: MIT
 *
 * bench baseline: runs that are kept under a name, listed, shown and removed; and what a sweep
 * with --save-baseline or --baseline does before its first and after its last row. */
#include "harness/compare/baseline_store.h"

#include "commands.h"
#include "harness/command/list/list.h"
#include "harness/table/remarks.h"
#include "harness/table/run.h"
#include "harness/table/rundir.h"

/* For an error that is of the rows or the machine, not of the command line. */
static enum status refuse(int *code, enum status st)
{
    *code = EXIT_NOT_TRUSTWORTHY;
    return st;
}

/* Can the rows of a run be kept, which are all of one machine? */
static enum status examine_rows(const struct rows *rows, const char *run, int *code, struct err *e)
{
    const struct latency_row *const row = rows->row;

    if (rows->n == 0)
        return fail(e, E_IO, "%s has no rows to keep  -> give a run with measured rows", run);
    for (size_t i = 0; i < rows->n; i++) {
        if (strcmp(row[i].host_id, row[0].host_id) != 0)
            return fail(
                e, E_IO,
                "%s was measured on several machines  -> save the shard of each on its machine",
                run);
        if (remarks_of_row(row[i].status, row[i].status_detail) & REMARK_UNCHECKED)
            return refuse(code, fail(e, E_USAGE,
                                     "%s has unchecked rows and was not kept  -> run again without "
                                     "--no-check",
                                     run));
    }
    return OK;
}

/* The machine that measured a run, and whether its rows may be kept at all. */
static enum status examine(const char *run, char host_id[TEXT_SIZE], int *code, struct err *e)
{
    struct rows rows;

    TRY(run_table(&rows, run, TABLE_LATENCY, e));
    run_note_doubled(run, rows.doubled);
    const enum status st = examine_rows(&rows, run, code, e);
    if (st == OK)
        text_put(host_id, TEXT_SIZE, ((const struct latency_row *)rows.row)->host_id);
    rows_free(&rows);
    return st;
}

static enum status save(const struct options *o, const char *name, const char *run, int *code,
                        struct err *e)
{
    char host_id[TEXT_SIZE];

    TRY(examine(run, host_id, code, e));
    TRY(baseline_may_write(o, name, host_id, e));
    TRY(baseline_copy(o, name, host_id, run, e));
    if (!o->quiet)
        text_line(stderr, "kept as baseline \"%s\" of machine %s", name, host_id);
    return OK;
}

/* ---- sweeps ------------------------------------------------------------------------------- */

enum status baseline_ready(const struct options *o, const char *host_id, int *code, struct err *e)
{
    char path[FILE_PATH];

    if (o->save_baseline) {
        TRY(baseline_may_write(o, o->save_baseline, host_id, e));
        if (!o->check)
            return fail(e, E_USAGE,
                        "--save-baseline keeps no unchecked rows  -> leave out --no-check");
    }
    if (!o->baseline || baseline_find(path, o, o->baseline, host_id, e))
        return OK;
    return refuse(code, E_USAGE);
}

static enum status compare(const struct options *o, const char *run, int *code, struct err *e)
{
    /* Standard output is the latency rows only, unless the format is for people. */
    const bool table = o->format == FORMAT_TABLE || (o->format == FORMAT_AUTO && isatty(1));
    char path[FILE_PATH], host_id[17];

    if (!o->baseline)
        return OK;
    TRY(baseline_host(host_id, e));
    if (!baseline_find(path, o, o->baseline, host_id, e))
        return refuse(code, E_USAGE);
    return compare_two(o, path, run, table ? stdout : stderr, FORMAT_TABLE, code, e);
}

enum status baseline_finish(const struct options *o, const char *run, int *code, struct err *e)
{
    struct err why;
    const enum status st = compare(o, run, code, e);
    const enum status saved =
        o->save_baseline ? save(o, o->save_baseline, run, code, st == OK ? e : &why) : OK;

    return st == OK ? saved : st;
}

/* ---- the command -------------------------------------------------------------------------- */

/* While baselines are gone through. */
struct going {
    struct text_table *t;
    const char *host_id;
    enum status st;
    struct err *e;
};

static bool list_one(void *arg, const char *host_id, const char *name, const char *path)
{
    struct going *const g = arg;
    char cpu[128];
    struct rows rows;
    struct latency_row first = latency_row_empty();

    baseline_cpu(path, cpu, sizeof(cpu));
    g->st = run_table(&rows, path, TABLE_LATENCY, g->e);
    if (g->st == OK && rows.n > 0)
        first = *(const struct latency_row *)rows.row;
    text_table_cell(g->t, "%s", name);
    text_table_cell(g->t, "%s", strcmp(host_id, g->host_id) == 0 ? "yes" : "no");
    text_table_cell(g->t, "%s", host_id);
    text_table_cell(g->t, "%s", cpu);
    text_table_cell(g->t, "%s", first.run_id);
    text_table_cell(g->t, "%zu", rows.n);
    text_table_cell(g->t, "%s", path);
    rows_free(&rows);
    return g->st != OK;
}

static const struct text_table_column baseline_columns[] = {
    {.name = "baseline"},
    {.name = "here"},
    {.name = "host_id", .spare = 1},
    {.name = "cpu_model", .least = 16},
    {.name = "run_id"},
    {.name = "rows", .number = true},
    {.name = "path", .spare = 1},
};

/* Those of this and other machines. */
static enum status fill_baselines(struct text_table *t, struct options *o, struct err *e)
{
    char host_id[17];
    struct going g = {.t = t, .host_id = host_id, .e = e};

    TRY(baseline_host(host_id, e));
    baseline_each(o, NULL, list_one, &g);
    return g.st;
}

const struct listing list_of_baselines = LISTING(baseline_columns, .fill = fill_baselines);

static enum status show(const struct options *o, const char *path, struct err *e)
{
    const struct table *t = &tables[TABLE_LATENCY];
    static const char *const some[] = {"case_id",   "variant",     "backend",     "workload",
                                       "mem_kind",  "seq_tokens",  "mem_tokens",  "threads",
                                       "median_ns", "ci95_low_ns", "ci95_high_ns"};
    struct text_table_column columns[ARRAY_LEN(some)] = {{0}};
    struct selection at;
    struct rows rows;
    struct text_table s = {.column = columns, .columns = ARRAY_LEN(some)};

    CHECK(columns_select(&at, t, some, ARRAY_LEN(some), e) == OK);
    for (int i = 0; i < at.n; i++) {
        columns[i].name = some[i];
        columns[i].number = t->columns[at.at[i]].type != COLUMN_TEXT;
    }
    TRY(text_table_select(&s, &o->columns, e));
    TRY(run_table(&rows, path, TABLE_LATENCY, e));
    const struct latency_row *const row = rows.row;
    for (size_t i = 0; i < rows.n; i++)
        for (int k = 0; k < at.n; k++) {
            char number[NUMBER_SIZE];
            text_table_cell(&s, "%s", row_field(t, at.at[k], &row[i], number));
        }
    text_table_print(stdout, &s, (enum format)o->format);
    text_table_free(&s);
    rows_free(&rows);
    return OK;
}

enum status cmd_baseline(struct options *opt, int *code, struct err *e)
{
    const char *const verb = opt->words.n > 0 ? opt->words.v[0] : "", *const name =
                                                                          opt->words.n > 1
                                                                              ? opt->words.v[1]
                                                                              : NULL;
    char path[FILE_PATH], host_id[17];

    if (strcmp(verb, "list") == 0)
        return list_print(&list_of_baselines, "baselines", opt, code, e);
    if (!*verb)
        return fail(e, E_USAGE,
                    "baseline needs a verb  -> write save NAME [RUN], list, show NAME or rm NAME");
    if (word_index(verb, baseline_words) < 0)
        return unknown_word(e, "baseline", verb, baseline_words, NULL);
    if (!name)
        return fail(e, E_USAGE, "baseline %s needs a name  -> bench baseline %s NAME", verb, verb);
    TRY(baseline_name(name, e));
    if (strcmp(verb, "save") == 0) {
        TRY(rundir_find(path, opt->out, opt->words.n > 2 ? opt->words.v[2] : NULL, e));
        return save(opt, name, path, code, e);
    }
    TRY(baseline_host(host_id, e));
    if (!baseline_find(path, opt, name, host_id, e))
        return refuse(code, fail(e, E_USAGE,
                                 "this machine has no baseline \"%s\" in %.200s  -> bench "
                                 "baseline list",
                                 name, opt->out));
    return strcmp(verb, "show") == 0 ? show(opt, path, e) : baseline_remove(path, e);
}
