/* SPDX-License-Identifier: MIT
 *
 * The programs, the plan, and the loop over its cases. */
#include "ab_run.h"

#include "harness/cli/exit_code.h"
#include "harness/measure/estimate.h"
#include "harness/util/signals.h"
#include "harness/worker/reference.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

static const double MEMORY_SHARE = 0.9; /* of the free memory */

/* ---- programs ----------------------------------------------------------------------------- */

static enum status use_program(struct ab_side *p, const char *path, bool plain, struct err *e)
{
    char *real = plain ? need_text("%s", path) : realpath(path, NULL);
    const bool runs = real && (plain || access(real, X_OK) == 0) && strlen(real) < FILE_PATH;

    if (runs)
        strcpy(p->path, real);
    free(real);
    return runs ? OK
                : fail(e, E_IO,
                       "--exec %s=%.400s is not a program  -> build it and give its path, as "
                       "scripts/gate.sh COMMIT does",
                       p->name, path);
}

void ab_side_version(const struct ab_side *p, char *buf, size_t size)
{
    char program[FILE_PATH], flag[] = "--version";
    char *const argv[] = {program, flag, NULL};
    posix_spawn_file_actions_t files;
    int fd[2];
    pid_t pid;

    *buf = '\0';
    memcpy(program, p->path, sizeof(program));
    if (pipe2(fd, O_CLOEXEC) != 0)
        return;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, fd[1], STDOUT_FILENO);
    const bool runs = posix_spawn(&pid, p->path, &files, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&files);
    close(fd[1]);
    FILE *const f = fdopen(fd[0], "r");
    NEED(f);
    if (runs && fgets(buf, (int)size, f) && strncmp(buf, "bench ", 6) == 0)
        buf[strcspn(buf, "\n")] = '\0';
    else
        *buf = '\0';
    while (fgetc(f) != EOF) /* it may not wait for a reader */
        ;
    fclose(f);
    if (runs)
        waitpid(pid, NULL, 0);
}

/* Negative where it names none. */
static int side_of(const struct ab_run *l, const char *word, const char *path)
{
    for (int s = 0; path && path[1] && s <= AGAIN; s++) {
        const char *const name = l->program[s].name;
        if (strncmp(word, name, strlen(name)) == 0 && word + strlen(name) == path)
            return s;
    }
    return -1;
}

/* Otherwise each of its cases would fail, one after the other. */
static enum status check_program(const struct ab_side *p, struct err *e)
{
    char version[64];

    ab_side_version(p, version, sizeof(version));
    return *version ? OK
                    : fail(e, E_IO,
                           "%s is not a bench (%.400s --version does not say so)  -> build one and "
                           "give its path, as scripts/gate.sh COMMIT does",
                           p->name, p->path);
}

static enum status read_programs(struct ab_run *l, const struct options *o, struct err *e)
{
    l->program[BEFORE].name = "old";
    l->program[AFTER].name = "new";
    l->program[AGAIN].name = "again";
    for (int i = 0; i < o->exec.n; i++) {
        const char *word = o->exec.v[i], *path = strchr(word, '=');
        const int side = side_of(l, word, path);
        if (side < 0)
            return fail(e, E_USAGE, "--exec \"%.200s\"  -> write old=PATH, new=PATH or again=PATH",
                        word);
        if (*l->program[side].path)
            return fail(e, E_USAGE, "--exec %s twice  -> give one path a side",
                        l->program[side].name);
        TRY(use_program(&l->program[side], path + 1, o->plain, e));
    }
    if (!*l->program[BEFORE].path)
        return fail(e, E_USAGE, "no old program  -> add --exec old=PATH (new is this program)");
    if (o->plain && !*l->program[AFTER].path)
        return fail(e, E_USAGE, "no new command line  -> add --exec new='COMMAND'");
    for (int s = 0; s <= AGAIN; s++)
        if (!o->plain && *l->program[s].path)
            TRY(check_program(&l->program[s], e));
    return *l->program[AFTER].path ? OK
                                   : use_program(&l->program[AFTER], "/proc/self/exe", false, e);
}

/* ---- open and close ----------------------------------------------------------------------- */

static enum status check_options(const struct options *o, struct err *e)
{
    if (o->isolate != ISOLATE_EXEC)
        return fail(e, E_USAGE, "--isolate %s cannot run another program  -> use --isolate exec",
                    isolate_name[o->isolate]);
    if (!o->check)
        return fail(
            e, E_USAGE,
            "--no-check does not apply here: unchecked numbers are not compared  -> leave it out");
    return OK;
}

enum status ab_run_open(struct ab_run *l, struct options *opt, int threads, struct err *e)
{
    *l = (struct ab_run){0};
    TRY(session_open(&l->session, opt, e));
    TRY(check_options(opt, e));
    TRY(read_programs(l, opt, e));
    if (threads > 0)
        opt->default_threads = threads;
    if (!opt->plain)
        TRY(plan_asked(&l->plan, opt, e));
    const int dropped = plan_drop_unsupported(&l->plan);
    if (dropped > 0 && !opt->quiet)
        console_note(&l->session.console, "note: %d case%s left out: unsupported by their variants",
                     dropped, plural(dropped));
    l->session.setup.memory_bytes = MEMORY_SHARE * (double)l->session.facts.row.memory_free_bytes;
    session_lock(&l->session);
    return OK;
}

void ab_run_close(struct ab_run *l)
{
    plan_free(&l->plan);
    session_close(&l->session);
}

int ab_run_exit_code(const struct ab_run *l, enum status st)
{
    if (st == E_INTERRUPTED)
        return signals_exit_code();
    if (st != OK)
        return exit_of(st);
    return l->wrong > 0 ? EXIT_WRONG_NUMBERS : l->failed > 0 ? EXIT_SOME_FAILED : EXIT_FINE;
}

enum status ab_run_estimate(struct ab_run *l, int runs, struct err *e)
{
    const struct options *const o = l->session.opt;
    struct peaks peaks = {0};
    struct speeds speeds;
    double sum = 0;

    if (o->quiet || l->plan.n == 0)
        return OK;
    TRY(speeds_measure(&speeds, &peaks, &l->session.setup, l->session.topo, o->pin,
                       l->plan.cases[0].threads, e));
    speeds.slow = load_slows(l->session.facts.row.load_1min, speeds.threads,
                             l->session.facts.topo.allowed_cpus);
    for (int i = 0; i < l->plan.n; i++)
        sum += estimate_pairs_s(&l->plan.cases[i], &speeds, runs, AB_LAUNCHES, o->min_samples);
    console_note(&l->session.console, "%d case%s, about %s", l->plan.n, plural(l->plan.n),
                 duration_text(sum).s);
    return OK;
}

/* ---- cases -------------------------------------------------------------------------------- */

struct comparison *ab_run_comparison(struct ab_run *l, struct comparisons *c,
                                     const struct bench_case *bcase, double threshold)
{
    struct comparison *one = comparisons_add(c);

    if (bcase)
        case_label(bcase, one->label, sizeof(one->label));
    else
        text_put(one->label, sizeof(one->label), "whole run");
    for (int s = 0; s < SIDES; s++) {
        text_put(one->name[s], TEXT_SIZE, l->program[s].name);
        text_put(one->case_id[s], TEXT_SIZE, bcase ? bcase->case_id : "");
    }
    one->threshold = threshold;
    return one;
}

void ab_run_account(struct ab_run *l, struct comparison *c, const struct ab_pairs *d)
{
    for (int s = 0; s < SIDES; s++)
        c->arena_bytes[s] = d->arena_bytes[s];
    if (d->status == ROW_OK)
        return;
    l->wrong += d->status == ROW_WRONG;
    l->skipped += d->status == ROW_SKIPPED;
    l->failed += d->status == ROW_FAILED || d->status == ROW_TIMEOUT;
    snprintf(c->note, sizeof(c->note), "%s: %.900s", row_status_name[d->status], d->detail);
    session_warn(&l->session, c->note);
}

void ab_run_at(struct ab_run *l, int i, int n, const char *label)
{
    struct progress_line *const show = &l->session.console.wait;

    if (i == 0)
        progress_begin(show, 0, "[1/%d] %s", n, label);
    else
        progress_at(show, (double)i / n, "[%d/%d] %s", i + 1, n, label);
}

static enum status compare_case(struct ab_run *l, struct comparison *c,
                                const struct bench_case *bcase, struct err *e)
{
    const struct options *o = l->session.opt;
    struct ab_pairs d = {.status = ROW_FAILED};
    int reference = -1;
    struct err why;
    enum status st = OK;

    if (reference_make(&reference, bcase, &l->session.setup, 0, &why) == OK)
        st = ab_pairs_run(&d, l, bcase, &l->program[BEFORE], &l->program[AFTER], reference,
                          o->min_samples, 0, e);
    else
        text_put(d.detail, sizeof(d.detail), why.msg);
    if (st == OK && *l->session.setup.stop)
        st = fail(e, E_INTERRUPTED, "interrupted");
    if (reference >= 0)
        close(reference);
    if (st == OK && d.status == ROW_OK) {
        double *work = need_room((size_t)d.n * PAIRS_WORK + 1, sizeof(*work));
        c->change = change_of_pairs(d.pair, d.n, bcase->threads, c->threshold, work);
        free(work);
    }
    if (st == OK)
        ab_run_account(l, c, &d);
    comparison_exact(c);
    ab_pairs_free(&d);
    return st;
}

enum status ab_run_compare(struct ab_run *l, struct comparisons *c, double threshold, struct err *e)
{
    enum status st = OK;

    for (int i = 0; i < l->plan.n && st == OK; i++) {
        const struct bench_case *bcase = &l->plan.cases[i];
        struct comparison *one = ab_run_comparison(l, c, bcase, threshold);
        if (*l->session.setup.stop)
            st = fail(e, E_INTERRUPTED, "interrupted");
        ab_run_at(l, i, l->plan.n, one->label);
        if (st == OK)
            st = compare_case(l, one, bcase, e);
        if (st != OK)
            c->n--; /* no partial results */
        else if (!l->session.opt->quiet)
            console_note(&l->session.console, "[%d/%d] %s  %s", i + 1, l->plan.n, one->label,
                         verdict_name[one->change.verdict]);
    }
    progress_end(&l->session.console.wait);
    return st;
}
