/* SPDX-License-Identifier: MIT
 *
 * bench baseline: runs that are kept under a name, listed, shown and removed; and what a sweep
 * with --save-baseline or --baseline does before its first and after its last row. */
#include "harness/compare/baseline_store.h"

#include "commands.h"
#include "harness/table/record.h"
#include "harness/table/remarks.h"
#include "harness/table/run.h"
#include "harness/table/rundir.h"
#include "harness/util/suggest.h"
#include "list.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The machine that measured a run, and whether its rows may be kept at all. */
static int examine(const char *run, char host_id[TEXT_SIZE])
{
    struct rows rows;
    struct err e;
    enum status st = run_table(&rows, run, TABLE_LATENCY, &e);
    int code = EXIT_FINE;

    if (st == OK)
        run_note_doubled(run, rows.doubled);
    if (st == OK && rows.n == 0)
        st = fail(&e, E_IO, "%s has no rows to keep  -> give a run with measured rows", run);
    const struct latency_row *row = rows.row;
    for (size_t i = 0; i < rows.n && st == OK && code == EXIT_FINE; i++) {
        if (strcmp(row[i].host_id, row[0].host_id) != 0)
            st = fail(
                &e, E_IO,
                "%s was measured on several machines  -> save the shard of each on its machine",
                run);
        else if (remarks_of_row(row[i].status, row[i].status_detail) & REMARK_UNCHECKED) {
            text_line(
                stderr,
                "bench: %s has unchecked rows and was not kept  -> run again without --no-check",
                run);
            code = EXIT_NOT_TRUSTWORTHY;
        }
    }
    if (st == OK)
        text_put(host_id, TEXT_SIZE, row[0].host_id);
    rows_free(&rows);
    return st == OK ? code : report_error(st, &e);
}

static int save(const struct options *o, const char *name, const char *run)
{
    char host_id[TEXT_SIZE] = "";
    struct err e;
    const int code = examine(run, host_id);

    if (code != EXIT_FINE)
        return code;
    enum status st = baseline_may_write(o, name, host_id, &e);
    if (st == OK)
        st = baseline_copy(o, name, host_id, run, &e);
    if (st != OK)
        return report_error(st, &e);
    if (!o->quiet)
        text_line(stderr, "kept as baseline \"%s\" of machine %s", name, host_id);
    return EXIT_FINE;
}

/* ---- sweeps ------------------------------------------------------------------------------- */

int baseline_ready(const struct options *o, const char *host_id)
{
    char path[FILE_PATH];
    struct err e;

    if (o->save_baseline) {
        const enum status st = baseline_may_write(o, o->save_baseline, host_id, &e);
        if (st != OK)
            return report_error(st, &e);
        if (!o->check)
            return report_error(
                fail(&e, E_USAGE,
                     "--save-baseline keeps no unchecked rows  -> leave out --no-check"),
                &e);
    }
    if (!o->baseline || baseline_find(path, o, o->baseline, host_id, &e))
        return EXIT_FINE;
    report_error(E_USAGE, &e);
    return EXIT_NOT_TRUSTWORTHY;
}

int baseline_finish(const struct options *o, const char *run)
{
    char path[FILE_PATH], host_id[17];
    struct err e;
    int code = EXIT_FINE;
    /* Standard output is the latency rows only, unless the format is for people. */
    const bool table = o->format == FORMAT_TABLE || (o->format == FORMAT_AUTO && isatty(1));

    if (o->baseline) {
        const enum status st = baseline_host(host_id, &e);
        if (st != OK)
            return report_error(st, &e);
        if (!baseline_find(path, o, o->baseline, host_id, &e)) {
            report_error(E_USAGE, &e);
            return EXIT_NOT_TRUSTWORTHY;
        }
        code = compare_two(o, path, run, table ? stdout : stderr, FORMAT_TABLE);
    }
    const int saved = o->save_baseline ? save(o, o->save_baseline, run) : EXIT_FINE;
    return saved == EXIT_FINE ? code : saved;
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
    char rows_text[NUMBER_SIZE] = "", cpu[128];
    struct rows rows;
    struct latency_row first = latency_row_empty();

    baseline_cpu(path, cpu, sizeof(cpu));
    g->st = run_table(&rows, path, TABLE_LATENCY, g->e);
    if (g->st == OK && rows.n > 0)
        first = *(const struct latency_row *)rows.row;
    snprintf(rows_text, sizeof(rows_text), "%zu", rows.n);
    const char *text[] = {name,         strcmp(host_id, g->host_id) == 0 ? "yes" : "no",
                          host_id,      cpu,
                          first.run_id, rows_text,
                          path};
    if (g->st == OK)
        text_table_add(g->t, text);
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

static int show(const struct options *o, const char *path)
{
    const struct table *t = &tables[TABLE_LATENCY];
    static const char *const some[] = {"case_id",   "variant",     "backend",     "workload",
                                       "mem_kind",  "seq_tokens",  "mem_tokens",  "threads",
                                       "median_ns", "ci95_low_ns", "ci95_high_ns"};
    struct text_table_column columns[ARRAY_LEN(some)] = {{0}};
    struct selection at;
    struct rows rows = {0};
    struct err e;
    struct text_table s = {.column = columns, .columns = ARRAY_LEN(some)};

    CHECK(columns_select(&at, t, some, ARRAY_LEN(some), &e) == OK);
    for (int i = 0; i < at.n; i++) {
        columns[i].name = some[i];
        columns[i].number = t->columns[at.at[i]].type != COLUMN_TEXT;
    }
    enum status st = run_table(&rows, path, TABLE_LATENCY, &e);
    for (size_t i = 0; i < rows.n && st == OK; i++) {
        char num[ARRAY_LEN(some)][NUMBER_SIZE];
        const char *text[ARRAY_LEN(some)];
        for (int k = 0; k < at.n; k++)
            text[k] = row_field(t, at.at[k], (const struct latency_row *)rows.row + i, num[k]);
        text_table_add(&s, text);
    }
    if (st == OK)
        st = text_table_select(&s, &o->columns, &e);
    if (st == OK)
        text_table_print(stdout, &s, (enum format)o->format);
    text_table_free(&s);
    rows_free(&rows);
    return st == OK ? EXIT_FINE : report_error(st, &e);
}

int cmd_baseline(struct options *opt)
{
    const char *verb = opt->words.n > 0 ? opt->words.v[0] : "", *name;
    char path[FILE_PATH], host_id[17];
    struct err e;

    if (strcmp(verb, "list") == 0)
        return list_print(&list_of_baselines, "baselines", opt);
    if (!*verb)
        return report_error(
            fail(&e, E_USAGE,
                 "baseline needs a verb  -> write save NAME [RUN], list, show NAME or rm NAME"),
            &e);
    if (word_index(verb, baseline_words) < 0)
        return report_error(unknown_word(&e, "baseline", verb, baseline_words, NULL), &e);
    if (opt->words.n < 2)
        return report_error(
            fail(&e, E_USAGE, "baseline %s needs a name  -> bench baseline %s NAME", verb, verb),
            &e);
    name = opt->words.v[1];
    enum status st = baseline_name(name, &e);
    if (st == OK && strcmp(verb, "save") == 0) {
        st = rundir_find(path, opt->out, opt->words.n > 2 ? opt->words.v[2] : NULL, &e);
        return st == OK ? save(opt, name, path) : report_error(st, &e);
    }
    if (st == OK)
        st = baseline_host(host_id, &e);
    if (st != OK)
        return report_error(st, &e);
    if (!baseline_find(path, opt, name, host_id, &e)) {
        fail(&e, E_USAGE, "this machine has no baseline \"%s\" in %.200s  -> bench baseline list",
             name, opt->out);
        report_error(E_USAGE, &e);
        return EXIT_NOT_TRUSTWORTHY;
    }
    if (strcmp(verb, "show") == 0)
        return show(opt, path);
    st = baseline_remove(path, &e);
    return st == OK ? EXIT_FINE : report_error(st, &e);
}
