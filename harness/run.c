/* SPDX-License-Identifier: MIT
 *
 * bench sweep: from the plan to the tables. The parent plans, starts children, and writes; it opens
 * no OpenMP region, no BLAS, and computes nothing that is measured. */
#include "build.h"
#include "commands.h"
#include "env_row.h"
#include "group.h"
#include "human.h"
#include "list_cells.h"
#include "lock.h"
#include "rundir.h"
#include "runjson.h"
#include "show.h"
#include "signals.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct run {
    struct options *opt;
    struct plan plan;
    struct topo *topo;
    struct env_facts facts;
    struct env_ticks ticks;
    struct env_row env;
    struct rundir dir;
    struct child_setup setup;
    struct show show;
    struct peaks *peaks; /* one per distinct number of threads */
    int n_peaks;
    struct seen *seen; /* [plan.n] */
    int n_seen;
    int rows[ROW_STATUS_COUNT];
    int samples, disturbed, warnings;
    bool started; /* the run has its folder */
};

/* What cells may take of the memory that is free; the rest is for page cache and surprises. */
static const double MEMORY_SHARE = 0.9;
enum { CHILD_PATIENCE_S = 900 }; /* a slow reference at a long length takes minutes */

/* ---- before the first cell ---------------------------------------------------------------- */

static void warn(struct run *r, const char *text)
{
    r->warnings++;
    show_note(&r->show, "warning: %s", text);
}

/* Every number of threads must have its places before anything is measured. */
static enum status check_places(struct run *r, struct err *e)
{
    for (int i = 0; i < r->plan.n; i++) {
        const int n = r->plan.cells[i].threads;
        int *cpus = calloc((size_t)n, sizeof(*cpus));
        CHECK(cpus);
        const enum status st = topo_plan(r->topo, r->opt->pin, n, cpus, e);
        free(cpus);
        if (st != OK)
            return st;
    }
    return OK;
}

static const struct peaks *peaks_for(const struct run *r, int threads)
{
    for (int i = 0; i < r->n_peaks; i++)
        if (r->peaks[i].threads == threads)
            return &r->peaks[i];
    return NULL;
}

/* Peaks belong to a number of threads; a failure costs columns, not the run. */
static void measure_peaks(struct run *r)
{
    r->peaks = calloc((size_t)r->plan.n, sizeof(*r->peaks));
    CHECK(r->peaks);
    for (int i = 0; i < r->plan.n; i++) {
        const int n = r->plan.cells[i].threads;
        struct err why;
        if (peaks_for(r, n))
            continue;
        int *cpus = calloc((size_t)n, sizeof(*cpus));
        CHECK(cpus);
        enum status st = topo_plan(r->topo, r->opt->pin, n, cpus, &why);
        if (st == OK)
            st = peaks_measure(NULL, n, cpus, cpu_isa(), &r->peaks[r->n_peaks], &why);
        free(cpus);
        if (st == OK)
            r->n_peaks++;
        else
            warn(r, why.msg);
    }
}

/* ---- hooks of a group --------------------------------------------------------------------- */

static enum status on_sample(void *arg, const struct result *res, const struct sample *s,
                             struct err *e)
{
    struct run *r = arg;
    struct sample_row row = sample_row_empty();

    text_put(row.run_id, sizeof(row.run_id), r->dir.run_id);
    text_put(row.case_id, sizeof(row.case_id), res->cell->case_id);
    row.sample = res->n - 1;
    row.round = s->round;
    row.wall_ns = s->wall_ns;
    row.cpu_ns = s->cpu_ns;
    row.calls = s->calls;
    row.involuntary_switches = s->involuntary_switches;
    row.disturbed = s->disturbed;
    show_progress(&r->show, res);
    return samples_write(&r->dir.samples, &row, e);
}

static void on_warning(void *arg, const char *text) { warn(arg, text); }

/* ---- rows of a group ---------------------------------------------------------------------- */

static double ref_median(const struct result *results, int n, const struct result *of)
{
    for (int i = 0; i < n; i++)
        if (results[i].cell->backend == &backend_ref && results[i].n > 0 &&
            results[i].cell->mem_kind == of->cell->mem_kind &&
            cell_same_problem(results[i].cell, of->cell))
            return results[i].sum.median;
    return NAN;
}

/* Noise that the goal is far from, said once per row. */
static void remark(struct run *r, const struct result *res)
{
    const struct summary *s = &res->sum;
    const double half = 50 * (s->ci_high - s->ci_low) / s->median; /* percent */
    char text[256];

    if (res->status != ROW_OK || !(s->noisy || half > 5 * r->opt->target_ci_pct))
        return;
    snprintf(text, sizeof(text),
             "noise %s (goal %s), %.0f %% of samples interrupted  -> row kept, marked; stop other "
             "jobs or raise --max-time",
             human_pct(half).s, human_pct(r->opt->target_ci_pct).s,
             100.0 * s->disturbed / max_int(1, s->samples));
    warn(r, text);
}

static void complain_if_wrong(struct run *r, const struct result *res)
{
    char label[160];

    if (res->status != ROW_WRONG)
        return;
    cell_label(res->cell, label, sizeof(label));
    show_note(&r->show,
              "bench: results differ from reference: %s %s  -> no time recorded; bench rerun %s -v",
              label, res->detail, res->cell->case_id);
}

static enum status write_rows(struct run *r, const struct result *res, double ref_ns, struct err *e)
{
    const struct yardstick y = {peaks_for(r, res->cell->threads), &r->facts.topo, ref_ns};
    struct key_row key;
    struct memory_row memory;
    struct latency_row latency;

    result_key(&key, res, r->dir.run_id, r->facts.host_id);
    result_memory(&memory, res, &key);
    result_latency(&latency, res, &key, &y);
    enum status st = rundir_write(&r->dir, TABLE_MEMORY, &memory, e);
    if (st == OK) /* last: a case without its latency row is not done */
        st = rundir_write(&r->dir, TABLE_LATENCY, &latency, e);
    if (st != OK)
        return st;
    show_row(&r->show, res, &latency);
    complain_if_wrong(r, res);
    remark(r, res);
    r->rows[res->status]++;
    r->samples += res->sum.samples;
    r->disturbed += res->sum.disturbed;
    if (res->status == ROW_OK)
        r->seen[r->n_seen++] = (struct seen){res->cell, res->sum.median};
    env_row_library(&r->env, res->report.core, res->report.config);
    return OK;
}

static enum status run_group(struct run *r, const struct cell *const *cells, int n, struct err *e)
{
    const struct group_hooks hooks = {on_sample, on_warning, r};
    struct result *results = calloc((size_t)n, sizeof(*results));
    struct err why;

    CHECK(results);
    env_gather(r->topo, &r->facts);
    r->setup.memory_bytes = MEMORY_SHARE * (double)r->facts.memory_free_bytes;
    enum status st = group_measure(cells, n, &r->setup, &hooks, results, e);
    enum status io = samples_flush(&r->dir.samples, &why);
    for (int i = 0; i < n && io == OK; i++)
        io = write_rows(r, &results[i], ref_median(results, n, &results[i]), &why);
    for (int i = 0; i < n; i++)
        result_free(&results[i]);
    free(results);
    if (io != OK) { /* a disk that cannot be written outranks everything but an interruption */
        *e = why;
        return io;
    }
    return st;
}

/* Every group of the plan, without the cells that a resumed run has already. */
static enum status run_all(struct run *r, struct err *e)
{
    const struct cell **cells = calloc((size_t)r->plan.n, sizeof(*cells));
    enum status st = OK;

    CHECK(cells);
    for (int i = 0; i < r->plan.n && st == OK;) {
        const int group = r->plan.cells[i].group;
        int n = 0;
        for (; i < r->plan.n && r->plan.cells[i].group == group; i++)
            if (rundir_done(&r->dir, TABLE_LATENCY, r->plan.cells[i].case_id))
                r->show.cells--;
            else
                cells[n++] = &r->plan.cells[i];
        if (n > 0)
            st = run_group(r, cells, n, e);
        if (st == OK && r->opt->fail_fast && r->rows[ROW_FAILED] + r->rows[ROW_WRONG] > 0)
            break;
    }
    free(cells);
    return st;
}

/* ---- beginning and end -------------------------------------------------------------------- */

/* A run is continued only with the options that it was begun with. */
static enum status resume_dir(struct run *r, char started[TEXT_SIZE], struct err *e)
{
    const struct options *o = r->opt;
    char path[FILE_PATH], *stored = NULL;
    enum status st = rundir_find(path, o->out, o->resume_dir, e);

    if (st == OK)
        st = runjson_read(path, &stored, started, e);
    if (st == OK)
        st = options_resumable(o, stored, path, e);
    if (st == OK)
        st = rundir_resume(&r->dir, o->out, o->resume_dir, e);
    free(stored);
    return st;
}

static enum status create_dir(struct run *r, const char *started, time_t now, struct err *e)
{
    const struct options *o = r->opt;
    enum raw raw = (enum raw)o->raw;
    const char *note = NULL;
    enum status st = raw_choose(&raw, &note, raw, options_given(o, "raw"), e);

    if (st != OK)
        return st;
    if (note)
        show_note(&r->show, "note: %s", note);
    st = rundir_create(&r->dir, o->out, build_commit, now, raw, e);
    if (st != OK)
        return st;
    char *canonical = options_canonical(o);
    const struct runjson json = {.run_id = r->dir.run_id,
                                 .host_id = r->facts.host_id,
                                 .started_at_utc = started,
                                 .argc = o->argc,
                                 .argv = o->argv,
                                 .options = canonical};
    st = runjson_create(r->dir.path, &json, e);
    free(canonical);
    return st;
}

static enum status open_dir(struct run *r, struct err *e)
{
    const time_t now = time(NULL);
    char started[TEXT_SIZE];

    utc_text(started, now);
    const enum status st =
        r->opt->resume ? resume_dir(r, started, e) : create_dir(r, started, now, e);
    if (st != OK)
        return st;
    env_row_begin(&r->env, &r->facts, r->opt, r->dir.run_id, started);
    return rundir_env(&r->dir, &r->env, e);
}

static void greet(struct run *r)
{
    char machine[256];

    if (r->opt->quiet)
        return;
    env_summary(&r->facts, machine, sizeof(machine));
    show_note(&r->show, "bench %s (%s%s)  %s", build_version, build_commit,
              build_dirty ? ", modified" : "", machine);
    show_note(&r->show, "%d cells in %d groups, at most %.0f s each; clock %.0f ns", r->plan.n,
              r->plan.groups, r->opt->max_time_s, r->facts.clock.overhead_ns);
}

static enum status prepare(struct run *r, struct err *e)
{
    struct options *o = r->opt;
    struct topo_facts f;
    enum status st = topo_open(&r->topo, NULL, e);

    if (st != OK)
        return st;
    topo_facts(r->topo, &f);
    o->default_threads = max_int(1, f.allowed_cores);
    st = plan_make(&r->plan, o, e);
    if (st == OK && r->plan.n > 0)
        st = check_places(r, e);
    if (st == OK)
        st = show_open(&r->show, o, r->plan.n, e);
    if (st == OK)
        st = env_child_environment(environ, o->openblas_core, &r->setup.environment, e);
    if (st != OK)
        return st;
    env_gather(r->topo, &r->facts);
    r->ticks = env_ticks();
    r->setup.isolate = (enum isolate)o->isolate;
    r->setup.patience_s = CHILD_PATIENCE_S;
    r->setup.stop = signals_watch();
    cpu_name(r->setup.cpu, sizeof(r->setup.cpu));
    r->seen = calloc((size_t)max_int(1, r->plan.n), sizeof(*r->seen));
    CHECK(r->seen);
    return OK;
}

/* UX 7, precedence: interruption, files, wrong, failed, not trustworthy. */
static int exit_code_of(const struct run *r, enum status st)
{
    if (st == E_INTERRUPTED)
        return signals_exit_code();
    if (st == E_IO)
        return EXIT_BAD_FILE;
    if (r->rows[ROW_WRONG] > 0)
        return EXIT_WRONG_NUMBERS;
    if (st != OK || r->rows[ROW_FAILED] + r->rows[ROW_TIMEOUT] > 0)
        return EXIT_SOME_FAILED;
    if (r->opt->strict && r->warnings > 0)
        return EXIT_NOT_TRUSTWORTHY;
    if (r->rows[ROW_SKIPPED] > 0 && r->rows[ROW_SKIPPED] == r->plan.n)
        return EXIT_NOTHING_TO_DO;
    return EXIT_FINE;
}

static void say_goodbye(struct run *r, int code)
{
    show_fastest(&r->show, r->seen, r->n_seen);
    if (r->disturbed > 0 && !r->opt->quiet)
        show_note(&r->show,
                  "%d of %d samples were interrupted by other processes (kept in the samples file)",
                  r->disturbed, r->samples);
    if (code >= EXIT_SIGINT) {
        fprintf(stderr, "interrupted; what was measured is in %s\nresume with:", r->dir.path);
        for (int i = 0; i < r->opt->argc; i++)
            if (strncmp(r->opt->argv[i], "--resume", 8) != 0)
                fprintf(stderr, " %s", r->opt->argv[i]);
        fprintf(stderr, " --resume=%s\n", r->dir.path);
    } else if (!r->opt->quiet) {
        show_note(&r->show, "wrote %s/{latency,memory,perplexity,env}.csv", r->dir.path);
    }
}

/* Close the tables whatever happened; the first failure to write decides. */
static enum status finish(struct run *r, enum status st, struct err *e)
{
    const struct env_ticks after = env_ticks();
    const int code = exit_code_of(r, st);
    char finished[TEXT_SIZE];
    struct err why;

    utc_text(finished, time(NULL));
    env_row_end(&r->env, finished, code, env_steal_pct(&r->ticks, &after));
    enum status io = rundir_env(&r->dir, &r->env, &why);
    if (io == OK)
        io = runjson_finish(r->dir.path, finished, code, r->rows, &why);
    if (io == OK)
        io = rundir_close(&r->dir, &why);
    else
        rundir_close(&r->dir, &(struct err){""});
    if (io == OK)
        io = file_flush(stdout, "standard output", &why);
    if (io != OK && st != E_INTERRUPTED && st != E_IO) {
        *e = why;
        return io;
    }
    return st;
}

static enum status measure_all(struct run *r, struct err *e)
{
    enum status st = open_dir(r, e);

    if (st != OK)
        return st;
    r->started = true;
    greet(r);
    if (!lock_machine())
        warn(r, "another bench is measuring on this machine  -> wait for it, or expect noise");
    measure_peaks(r);
    if (r->n_peaks > 0)
        env_row_peaks(&r->env, &r->peaks[r->n_peaks - 1]);
    st = rundir_env(&r->dir, &r->env, e);
    if (st == OK)
        st = run_all(r, e);
    st = finish(r, st, e);
    say_goodbye(r, exit_code_of(r, st));
    return st;
}

int cmd_sweep(struct options *opt)
{
    struct run r = {.opt = opt};
    struct err e;
    int code = EXIT_NOTHING_TO_DO;

    if (opt->dry_run)
        return list_cells(opt);
    enum status st = prepare(&r, &e);
    if (st != OK) {
        code = report_error(st, &e);
    } else if (r.plan.n == 0) {
        fprintf(stderr, "bench: no cells to measure  -> see: bench list cells\n");
    } else {
        st = measure_all(&r, &e);
        if (st != OK && st != E_INTERRUPTED)
            report_error(st, &e);
        code = r.started ? exit_code_of(&r, st) : exit_of(st);
    }
    plan_free(&r.plan);
    env_free(r.setup.environment);
    topo_close(r.topo);
    free(r.peaks);
    free(r.seen);
    return code;
}
