/* SPDX-License-Identifier: MIT
 *
 * bench rerun CASE_ID [RUN]: one row again, a time or a perplexity, from its repro line in the
 * newest run below --out that has it, or in RUN. */
#include "commands.h"
#include "harness/compare/baseline.h"
#include "harness/table/run.h"
#include "harness/util/units.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct search {
    const char *id; /* or its first digits */
    char found_id[TEXT_SIZE], repro[LINE_SIZE];
    int found;            /* cases of the run that was looked at last */
    size_t doubled;       /* rows of that run, see struct rows */
    int runs;             /* that were looked at */
    struct err ambiguous; /* found > 1 */
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

static bool is_run(const char *dir)
{
    char path[FILE_PATH];

    return file_join(path, dir, tables[TABLE_LATENCY].file, NULL) == OK && access(path, F_OK) == 0;
}

/* A run has folders too (plots/), but no runs in them. */
static bool look_below(const char *dir, int depth, struct search *s);

static bool look_at(const char *dir, int depth, struct search *s)
{
    struct err why;

    if (!is_run(dir))
        return depth > 0 && look_below(dir, depth - 1, s);
    s->runs++;
    const enum status st = look(dir, s, &why);
    if (st != OK && s->found > 1)
        s->ambiguous = why;
    return st == OK || s->found > 1;
}

/* Runs are named by their time: the newest first. */
static bool look_below(const char *dir, int depth, struct search *s)
{
    char path[FILE_PATH];
    struct dirent **entries = NULL;
    const int n = scandir(dir, &entries, NULL, alphasort);
    bool found = false;

    for (int i = n - 1; i >= 0; i--) {
        struct stat is;
        found = found || (entries[i]->d_name[0] != '.' &&
                          file_join(path, dir, entries[i]->d_name, NULL) == OK &&
                          lstat(path, &is) == 0 && S_ISDIR(is.st_mode) && look_at(path, depth, s));
        free(entries[i]);
    }
    free(entries);
    return found;
}

/* In the run that is named, or in any below --out. */
static enum status find_case(struct search *s, const struct options *opt, struct err *e)
{
    enum { DEPTH = 3 }; /* results/reference/MACHINE/RUN */
    char dir[FILE_PATH];

    if (opt->words.n > 1) {
        const enum status st = baseline_or_run(dir, opt, opt->words.v[1], e);
        return st == OK ? look(dir, s, e) : st;
    }
    if (look_below(opt->out, DEPTH, s)) {
        if (s->found == 1)
            return OK;
        *e = s->ambiguous;
        return E_USAGE;
    }
    if (s->runs == 0)
        return fail(e, E_IO, "no run in %s  -> bench rerun CASE_ID RUN", opt->out);
    return fail(
        e, E_USAGE,
        "no case \"%.32s\" in the %d run%s below %s  -> the column case_id of latency.csv or "
        "perplexity.csv",
        s->id, s->runs, plural(s->runs), opt->out);
}

/* The row's case, with the options for measuring and printing of this command line. */
static enum status read_case(struct options *again, const struct search *s,
                             const struct options *opt, bool *scored, struct err *e)
{
    enum status st = options_parse_line(again, s->repro, e);

    if (st != OK)
        return st;
    *scored = strcmp(again->command, "eval") == 0;
    st = options_take(again, opt, e);
    if (!*scored)
        again->ckpt = "none"; /* one row, without the scores of its variant */
    again->command = opt->command;
    again->argc = opt->argc;
    again->argv = opt->argv;
    cpu_limit((enum isa)again->max_isa);
    return st;
}

int cmd_rerun(struct options *opt)
{
    struct options again = {0};
    struct err e;
    bool scored = false;

    if (opt->words.n == 0)
        return report_error(fail(&e, E_USAGE, "rerun needs a case  -> bench rerun CASE_ID"), &e);
    struct search s = {.id = opt->words.v[0]};
    enum status st = find_case(&s, opt, &e);
    if (st == OK)
        st = read_case(&again, &s, opt, &scored, &e);
    int code = st == OK ? EXIT_FINE : report_error(st, &e);
    if (st == OK)
        code = scored ? cmd_eval(&again) : cmd_sweep(&again);
    again.argv = NULL; /* opt's */
    options_free(&again);
    return code;
}
