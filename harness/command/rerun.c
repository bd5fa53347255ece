/* SPDX-License-Identifier: MIT
 *
 * bench rerun CASE_ID: one row again, a time or a perplexity, from its repro line in the latest run
 * that has it (or --resume=DIR's). */
#include "commands.h"
#include "harness/table/run.h"
#include "harness/table/rundir.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

struct search {
    const char *id; /* or its first digits */
    char found_id[TEXT_SIZE], repro[LINE_SIZE];
    int found;      /* cases */
    size_t doubled; /* rows of the run, see struct rows */
};

static enum status look_in(const char *dir, enum table_id table, struct search *s, struct err *e)
{
    const struct table *const t = &tables[table];
    struct rows rows;
    const enum status st = run_table(&rows, dir, table, e);

    for (size_t i = 0; st == OK && i < rows.n; i++) {
        const char *const row = (const char *)rows.row + i * t->row_size;
        const char *const id = row_text(t, row, "case_id");
        if (strncmp(id, s->id, strlen(s->id)) != 0)
            continue;
        s->found += s->found == 0 || strcmp(s->found_id, id) != 0;
        snprintf(s->found_id, sizeof(s->found_id), "%s", id);
        snprintf(s->repro, sizeof(s->repro), "%s", row_text(t, row, "repro"));
    }
    s->doubled += rows.doubled;
    rows_free(&rows);
    return st;
}

static enum status look(const char *dir, struct search *s, struct err *e)
{
    s->found = 0;
    s->doubled = 0;
    enum status st = look_in(dir, TABLE_LATENCY, s, e);
    if (st == OK)
        st = look_in(dir, TABLE_PERPLEXITY, s, e);
    if (st == OK && s->found != 1)
        st = fail(e, E_USAGE,
                  "%s case \"%.32s\" in %s  -> the column case_id of its latency.csv or "
                  "perplexity.csv",
                  s->found ? "more than one" : "no", s->id, dir);
    if (st == OK)
        run_note_doubled(dir, s->doubled);
    return st;
}

/* The latest run that has the case: a rerun makes a run of its own, which must not hide its origin.
 */
static enum status look_further(const char *out_dir, struct search *s)
{
    char dir[FILE_PATH];
    struct dirent **entries = NULL;
    const int n = scandir(out_dir, &entries, NULL, alphasort);
    enum status st = E_IO;

    for (int i = n - 1; i >= 0; i--) { /* folder names begin with the time */
        if (st != OK && entries[i]->d_name[0] != '.' &&
            file_join(dir, out_dir, entries[i]->d_name, NULL) == OK)
            st = look(dir, s, NULL);
        free(entries[i]);
    }
    free(entries);
    return st;
}

static enum status find_case(struct search *s, const struct options *opt, struct err *e)
{
    char dir[FILE_PATH];
    enum status st = rundir_find(dir, opt->out, opt->resume_dir, e);

    if (st == OK)
        st = look(dir, s, e);
    if (st == E_USAGE && s->found == 0 && !opt->resume_dir)
        st = look_further(opt->out, s) == OK ? OK : E_USAGE;
    return st;
}

int cmd_rerun(struct options *opt)
{
    struct options again = {0};
    struct err e;

    if (opt->words.n != 1)
        return report_error(fail(&e, E_USAGE, "rerun needs a case  -> bench rerun CASE_ID"), &e);
    struct search s = {.id = opt->words.v[0]};
    enum status st = find_case(&s, opt, &e);
    if (st == OK)
        st = options_parse_line(&again, s.repro, &e);
    if (st != OK) {
        options_free(&again);
        return report_error(st, &e);
    }
    const bool scored = strcmp(again.command, "eval") == 0;
    /* Measuring and output options are those of this command line. */
    again.command = opt->command;
    again.argc = opt->argc;
    again.argv = opt->argv;
    again.min_samples = opt->min_samples;
    again.max_time_s = opt->max_time_s;
    again.target_ci_pct = opt->target_ci_pct;
    again.block_ms = opt->block_ms;
    again.warmup_ms = opt->warmup_ms;
    again.isolate = opt->isolate;
    if (!scored)
        again.ckpt = "none"; /* one row, without the scores of its variant */
    again.check = opt->check;
    again.check_time_s = opt->check_time_s;
    again.out = opt->out;
    again.format = opt->format;
    again.raw = opt->raw;
    again.columns = opt->columns;
    again.progress = opt->progress;
    again.quiet = opt->quiet;
    again.verbose = opt->verbose;
    again.strict = opt->strict;
    cpu_limit((enum isa)again.max_isa);
    const int code = scored ? cmd_eval(&again) : cmd_sweep(&again);
    again.columns = (struct names){0}; /* these two still belong to opt */
    again.argv = NULL;
    options_free(&again);
    return code;
}
