/* SPDX-License-Identifier: MIT
 *
 * Finding a case in the tables of runs. */
#include "find_case.h"

#include "harness/compare/baseline.h"

#include <dirent.h>

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
    snprintf(s->run, sizeof(s->run), "%s", dir);
    TRY(look_in(dir, TABLE_LATENCY, s, e));
    TRY(look_in(dir, TABLE_PERPLEXITY, s, e));
    if (s->found != 1)
        return fail(e, E_USAGE,
                    "%s case \"%.32s\" in %s  -> see the column case_id of its latency.csv or "
                    "perplexity.csv",
                    s->found ? "more than one" : "no", s->id, dir);
    run_note_doubled(dir, s->doubled);
    return OK;
}

static bool is_run(const char *dir)
{
    char path[FILE_PATH];

    return file_join(path, dir, tables[TABLE_LATENCY].file, NULL) == OK && access(path, F_OK) == 0;
}

/* Folders still to look at, in this order. */
struct folders {
    struct folder {
        char path[FILE_PATH];
        int depth;
    } * v;
    int n;
};

/* Append the folders in this one; runs are named by their time: the newest first. Links are not
 * followed. */
static void add_below(struct folders *f, const char *dir, int depth)
{
    struct dirent **entries = NULL;
    const int n = scandir(dir, &entries, NULL, alphasort);

    for (int i = n - 1; i >= 0; i--) {
        struct folder one = {.depth = depth};
        struct stat is;
        if (entries[i]->d_name[0] != '.' &&
            file_join(one.path, dir, entries[i]->d_name, NULL) == OK && lstat(one.path, &is) == 0 &&
            S_ISDIR(is.st_mode)) {
            GROW_SMALL(f->v, f->n);
            f->v[f->n++] = one;
        }
        free(entries[i]);
    }
    free(entries);
}

/* Look at all runs below `dir`, up to the first that has the case, or several that begin so: then
 * s->ambiguous says it. What cannot be read as a run is none. */
static void look_below(const char *dir, struct search *s)
{
    enum { DEPTH = 3 }; /* results/reference/MACHINE/RUN */
    struct folders all = {0};

    add_below(&all, dir, 0);
    for (int i = 0; i < all.n && s->found == 0; i++) {
        const struct folder at = all.v[i];
        if (is_run(at.path)) {
            s->runs++;
            if (look(at.path, s, &s->ambiguous) != OK && s->found == 1)
                s->found = 0;
        } else if (at.depth < DEPTH) {
            add_below(&all, at.path, at.depth + 1);
        }
    }
    free(all.v);
}

enum status find_case(struct search *s, const struct options *opt, struct err *e)
{
    if (opt->words.n == 0)
        return fail(e, E_USAGE, "%s needs a case  -> bench %s CASE_ID", opt->command, opt->command);
    char dir[FILE_PATH];

    *s = (struct search){.id = opt->words.v[0]};

    if (opt->words.n > 1) {
        TRY(baseline_or_run(dir, opt, opt->words.v[1], e));
        return look(dir, s, e);
    }
    look_below(opt->out, s);
    if (s->found == 1)
        return OK;
    if (s->found > 1) {
        *e = s->ambiguous;
        return E_USAGE;
    }
    if (s->runs == 0)
        return fail(e, E_IO, "no run in %s  -> bench %s CASE_ID RUN", opt->out, opt->command);
    return fail(e, E_USAGE,
                "no case \"%.32s\" in the %d run%s below %s  -> see the column case_id of "
                "latency.csv or perplexity.csv",
                s->id, s->runs, plural(s->runs), opt->out);
}
