/* SPDX-License-Identifier: MIT
 *
 * bench compare: two runs on disk, one axis inside a run, or two programs measured in turns. */
#include "commands.h"
#include "harness/compare/ab_run.h"
#include "harness/compare/baseline.h"
#include "harness/compare/compare_print.h"

#include <dirent.h>

static double threshold_of(const struct options *o) { return o->threshold_pct / 100; }

static void note_doubled(const struct run *r)
{
    run_note_doubled(r->dir, r->latency.doubled + r->perplexity.doubled);
}

/* Rows never compared with the reference are not compared with each other either. */
static bool refuse_unchecked(const struct run *r)
{
    if (r->unchecked > 0)
        text_line(stderr,
                  "bench: %s has %d unchecked row%s, so nothing was compared  -> run again without "
                  "--no-check",
                  r->dir, r->unchecked, plural(r->unchecked));
    return r->unchecked > 0;
}

static void note_unsampled(const struct run *r)
{
    if (r->latency.n > 0 && r->samples.n == 0)
        text_line(
            stderr,
            "note: %s has no raw samples: how its times differ is not known  -> run again with "
            "--raw zst or csv",
            r->dir);
}

static void note_builds(const struct run *run[SIDES])
{
    const struct env_row *env[SIDES] = {run[BEFORE]->env.row, run[AFTER]->env.row};

    for (int s = 0; s < SIDES; s++)
        if (run[s]->env.n == 0)
            return;
    if (strcmp(env[BEFORE]->git_commit, env[AFTER]->git_commit) != 0)
        text_line(stderr, "note: old is commit %s%s, new is commit %s%s", env[BEFORE]->git_commit,
                  env[BEFORE]->git_dirty > 0 ? " (modified)" : "", env[AFTER]->git_commit,
                  env[AFTER]->git_dirty > 0 ? " (modified)" : "");
    if (strcmp(env[BEFORE]->compiler, env[AFTER]->compiler) != 0)
        text_line(stderr, "note: old was built by %s, new by %s", env[BEFORE]->compiler,
                  env[AFTER]->compiler);
}

static const char *machine_of(const struct run *r)
{
    return r->env.n > 0 ? ((const struct env_row *)r->env.row)->cpu_model : "unknown";
}

/* The summary, on stderr; the exit code. */
static int conclude(const struct comparisons *c, const struct options *o)
{
    int undecided = comparisons_undecided(c);

    const int alone = c->unmatched[BEFORE] + c->unmatched[AFTER];

    if (alone > 0 && !o->quiet)
        fprintf(stderr, "note: %d row%s without a partner (%d old, %d new)\n", alone, plural(alone),
                c->unmatched[BEFORE], c->unmatched[AFTER]);
    if (c->held_otherwise > 0 && !o->quiet)
        fprintf(stderr,
                "note: %d case%s only in where the context is, such as %s in old, %s in new "
                " -> measure with --mem-kind %s\n",
                c->held_otherwise, c->held_otherwise == 1 ? " differs" : "s differ",
                c->held[BEFORE], c->held[AFTER], c->held[BEFORE]);
    if (c->n == 0) {
        fprintf(stderr, "bench: no case in common, nothing compared  -> compare runs of the same "
                        "options\n");
        return EXIT_NOTHING_TO_DO;
    }
    if (c->other_machine > 0)
        return EXIT_NOT_TRUSTWORTHY;
    for (int i = 0; i < c->n; i++) /* a side that failed */
        undecided += c->v[i].exact ? comparison_exact_verdict(&c->v[i]) == VERDICT_UNCLEAR
                                   : c->v[i].change.n == 0;
    return o->strict && undecided > 0 ? EXIT_NOT_TRUSTWORTHY : EXIT_FINE;
}

static enum status print(FILE *f, const struct comparisons *c, const struct options *o,
                         enum format format, struct err *e)
{
    static const struct names all = {0};
    const enum status st =
        c->n > 0 ? comparisons_print(f, c, format, f == stdout ? &o->columns : &all, e) : OK;

    if (st == OK &&
        !o->quiet) /* the conclusion stands below the table; other formats hold rows only */
        comparisons_print_means(format_is_table(format, f) || format_is_pasted(format) ? f : stderr,
                                format, c);
    return st;
}

static enum status compare_read(const struct options *o, struct run *old, struct run *new, FILE *f,
                                enum format format, int *code, struct err *e)
{
    struct comparisons c = {0};

    /* A sweep with a baseline has filtered its cases. */
    TRY(run_filter(old, &o->filters, e));
    TRY(run_filter(new, &o->filters, e));
    if (refuse_unchecked(old) || refuse_unchecked(new)) {
        *code = EXIT_NOT_TRUSTWORTHY;
        return OK;
    }
    compare_runs(&c, old, new, threshold_of(o), o->seed);
    if (c.other_machine > 0)
        text_line(stderr,
                  "bench: %s is from another machine (%s, %s: %s), so times are not compared  -> "
                  "measure both here",
                  old->dir, machine_of(old), new->dir, machine_of(new));
    if (!o->quiet) {
        note_doubled(old);
        note_doubled(new);
        note_unsampled(old);
        note_unsampled(new);
        note_builds((const struct run *[]){old, new});
        text_line(stderr,
                  "note: two moments, unpaired: what else changed on the machine in between "
                  "is part of every difference  -> measure two programs in turns with --exec");
    }
    const enum status st = print(f, &c, o, format, e);
    if (st == OK)
        *code = conclude(&c, o);
    comparisons_free(&c);
    return st;
}

enum status compare_two(const struct options *o, const char *before, const char *after, FILE *f,
                        enum format format, int *code, struct err *e)
{
    struct run old, new;

    TRY(run_read(&old, before, e));
    enum status st = run_read(&new, after, e);
    if (st == OK)
        st = compare_read(o, &old, &new, f, format, code, e);
    run_free(&old);
    run_free(&new);
    return st;
}

static enum status compare_axis_of(const struct options *o, struct run *run, int *code,
                                   struct err *e)
{
    struct comparisons c = {0};

    TRY(run_filter(run, &o->filters, e));
    if (refuse_unchecked(run)) {
        *code = EXIT_NOT_TRUSTWORTHY;
        return OK;
    }
    if (!o->quiet) {
        note_doubled(run);
        note_unsampled(run);
    }
    enum status st = compare_axis(&c, run, o->axis, o->base, threshold_of(o), o->seed, e);
    if (st == OK && c.other_machine > 0)
        text_line(stderr,
                  "bench: %d pair%s of rows of %s come%s from two machines (host_id), so times are "
                  "not compared  -> measure both on one",
                  c.other_machine, plural(c.other_machine), run->dir,
                  c.other_machine == 1 ? "s" : "");
    if (st == OK)
        st = print(stdout, &c, o, (enum format)o->format, e);
    if (st == OK)
        *code = conclude(&c, o);
    comparisons_free(&c);
    return st;
}

static enum status compare_inside(const struct options *o, const char *dir, int *code,
                                  struct err *e)
{
    struct run run;

    TRY(run_read(&run, dir, e));
    const enum status st = compare_axis_of(o, &run, code, e);
    run_free(&run);
    return st;
}

static enum status compare_programs(struct options *o, int *code, struct err *e)
{
    struct comparisons c = {0};
    struct ab_run *const ab_run = need_room(1, sizeof(*ab_run));
    enum status st = ab_run_open(ab_run, o, 0, e);

    if (st == OK && *ab_run->program[AGAIN].path)
        st = fail(e, E_USAGE, "--exec again=PATH does not apply to compare  -> use bench gate");
    if (st == OK)
        st = ab_run_estimate(ab_run, 1, e);
    if (st == OK)
        st = ab_run_compare(ab_run, &c, threshold_of(o), e);
    struct err print_e;
    const enum status printed =
        ab_run->plan.n > 0 ? print(stdout, &c, o, (enum format)o->format, &print_e) : OK;
    *code = ab_run_exit_code(ab_run, st);
    if (st != OK && st != E_INTERRUPTED) {
        *code = exit_of(st);
    } else if (printed != OK) {
        *e = print_e;
        *code = exit_of(st = printed);
    } else if (*code == EXIT_FINE) {
        *code = conclude(&c, o);
    }
    ab_run_close(ab_run);
    free(ab_run);
    comparisons_free(&c);
    return st;
}

/* ---- the run before ------------------------------------------------------------------------ */

static bool has_case(const struct table *t, const struct rows *rows, const char *id)
{
    for (size_t i = 0; i < rows->n; i++)
        if (strcmp(row_text(t, (const char *)rows->row + i * t->row_size, "case_id"), id) == 0)
            return true;
    return false;
}

/* Has `old` every case that a table of `new` has? Their number is added to *cases. */
static bool has_cases(const char *old, const char *new, enum table_id table, size_t *cases)
{
    const struct table *const t = &tables[table];
    struct rows had = {0}, has = {0};
    struct err e;
    bool all = run_table(&had, old, table, &e) == OK && run_table(&has, new, table, &e) == OK;

    for (size_t i = 0; all && i < has.n; i++)
        all = has_case(t, &had, row_text(t, (const char *)has.row + i * t->row_size, "case_id"));
    *cases += has.n;
    rows_free(&had);
    rows_free(&has);
    return all;
}

static bool is_before(const char *old, const char *new)
{
    struct stat is;
    size_t cases = 0;

    return lstat(old, &is) == 0 && S_ISDIR(is.st_mode) &&
           has_cases(old, new, TABLE_LATENCY, &cases) &&
           has_cases(old, new, TABLE_PERPLEXITY, &cases) && cases > 0;
}

/* The newest run before `dir` in the same folder that has its cases. Runs are named by their time. */
static enum status run_before(char before[FILE_PATH], const char *dir, struct err *e)
{
    char run[FILE_PATH], above[FILE_PATH];
    struct dirent **entries = NULL;

    TRY(rundir_find(run, NULL, dir, e));
    file_parent(above, run);
    const int n = scandir(above, &entries, NULL, alphasort);
    bool found = false;
    for (int i = n - 1; i >= 0; i--) {
        const char *const other = entries[i]->d_name;
        found = found || (*other != '.' && strcmp(other, path_name(run)) < 0 &&
                          file_join(before, above, other, NULL) == OK && is_before(before, run));
        free(entries[i]);
    }
    free(entries);
    return found
               ? OK
               : fail(e, E_USAGE, "no run before %.300s has its cases  -> bench compare OLD %.300s",
                      run, dir);
}

static enum status compare_with_before(const struct options *o, const char *dir, int *code,
                                       struct err *e)
{
    char before[FILE_PATH];

    TRY(run_before(before, dir, e));
    if (!o->quiet)
        text_line(stderr, "note: compared with %s, the run before that has its cases", before);
    return compare_two(o, before, dir, stdout, (enum format)o->format, code, e);
}

enum status cmd_compare(struct options *opt, int *code, struct err *e)
{
    static const char *const taken[] = {"filter", "seed", NULL};
    char dir[2][FILE_PATH];

    if (opt->exec.n > 0 && (opt->words.n > 0 || opt->axis))
        return fail(e, E_USAGE,
                    "--exec measures two programs, it reads no runs  -> leave out the runs");
    if (opt->base && !opt->axis)
        return fail(e, E_USAGE, "--base without an axis  -> add --axis backend");
    if (opt->exec.n > 0)
        return compare_programs(opt, code, e);
    TRY(options_refuse(opt, "runs, which are read: --exec measures", taken, e));
    const bool one = opt->words.n == 1;
    if (!one && (opt->axis || opt->words.n != 2))
        return fail(e, E_USAGE, "compare needs %s  -> bench compare %s",
                    opt->axis ? "one run" : "two runs, an axis of one, or two programs",
                    opt->axis ? "--axis backend RUN"
                              : "OLD NEW, --axis backend RUN, or --exec old=PATH --exec new=PATH");
    for (int i = 0; i < opt->words.n; i++)
        TRY(baseline_or_run(dir[i], opt, opt->words.v[i], e));
    return opt->axis ? compare_inside(opt, dir[0], code, e)
           : one     ? compare_with_before(opt, dir[0], code, e)
                     : compare_two(opt, dir[0], dir[1], stdout, (enum format)opt->format, code, e);
}
