/* SPDX-License-Identifier: MIT
 *
 * Beginning and end of a run. */
#include "session.h"

#include "harness/cli/build.h"
#include "harness/cli/exit_code.h"
#include "harness/table/run.h"
#include "harness/util/signals.h"

void session_warn(struct session *s, const char *text)
{
    s->warnings++;
    if (!s->opt->quiet)
        console_note(&s->console, "warning: %s", text);
}

void session_lock(struct session *s)
{
    const enum lock_shared got = lock_machine();

    if (got == LOCK_ANOTHERS)
        session_warn(s,
                     "another bench is measuring on this machine  -> wait for it, or expect noise");
    else if (got == LOCK_NO_FILE && !s->opt->quiet)
        console_note(&s->console, "note: no lock of this machine: neither /tmp nor TMPDIR can be "
                                  "written  -> set TMPDIR, or start one bench at a time");
}

void session_say_how_to_resume(const struct session *s)
{
    text_line(stderr, "interrupted; the rows so far are in %s", s->dir.path);
    if (strcmp(s->opt->command, "rerun") == 0) /* one row: nothing to continue */
        return;
    fputs("resume with: ", stderr);
    options_print_resume(stderr, s->opt, CONTINUED_RUN, s->dir.path);
    fputc('\n', stderr);
}

static enum status continue_run(struct options *o, const char *path, char **stored, struct err *e)
{
    char command[TEXT_SIZE], started[TEXT_SIZE];

    TRY(runjson_command(path, command, e));
    if (strcmp(command, o->command) != 0)
        return fail(e, E_USAGE, "%.200s is a run of bench %s  -> bench %s%s", path, command,
                    command, strcmp(command, "rerun") == 0 ? " CASE_ID repeats it" : " --resume");
    TRY(runjson_read(path, stored, started, e));
    TRY(options_continue(o, *stored, CONTINUED_RUN, e));
    cpu_limit((enum isa)o->max_isa);
    return lookup_impl(o, e);
}

enum status session_continue(struct options *o, struct err *e)
{
    char path[FILE_PATH], *stored = NULL;

    if (!o->resume)
        return OK;
    TRY(rundir_find(path, o->out, o->resume_dir, e));
    const enum status st = continue_run(o, path, &stored, e);
    free(stored);
    return st;
}

/* ---- the folder --------------------------------------------------------------------------- */

/* A run is continued only with the options it was started with. */
static enum status resume_dir(struct session *s, char started[TEXT_SIZE], struct err *e)
{
    const struct options *o = s->opt;
    char path[FILE_PATH], *stored;

    TRY(rundir_find(path, o->out, o->resume_dir, e));
    TRY(runjson_read(path, &stored, started, e));
    const enum status st = options_resumable(o, stored, NULL, path, e);
    free(stored);
    TRY(st);
    TRY(rundir_resume(&s->dir, o->out, o->resume_dir, e));
    /* the exit code of a resumed run covers all its rows, not only the new ones */
    memcpy(s->rows, s->dir.had, sizeof(s->rows));
    if (!o->quiet)
        run_note_doubled(s->dir.path, s->dir.doubled);
    return OK;
}

static enum status create_dir(struct session *s, const char *started, time_t now, struct err *e)
{
    const struct options *o = s->opt;
    enum raw raw = (enum raw)o->raw;
    const char *note = NULL;

    TRY(raw_choose(&raw, &note, raw, options_given(o, "raw"), e));
    if (note && !o->quiet)
        console_note(&s->console, "note: %s", note);
    char *canonical = options_canonical(o, CONTINUED_RUN);
    const struct runjson json = {.command = o->command,
                                 .host_id = s->facts.row.host_id,
                                 .started_at_utc = started,
                                 .argc = o->argc,
                                 .argv = o->argv,
                                 .options = canonical,
                                 .file_name = s->file_name,
                                 .file_text = s->file_text};
    const enum status st = rundir_create(&s->dir, o->out, build_commit, now, raw, &json, e);
    free(canonical);
    return st;
}

static enum status open_dir(struct session *s, struct err *e)
{
    const time_t now = time(NULL);
    char started[TEXT_SIZE];

    utc_text(started, now);
    TRY(s->opt->resume ? resume_dir(s, started, e) : create_dir(s, started, now, e));
    env_row_begin(&s->env, &s->facts, s->opt, s->dir.run_id, started);
    return rundir_env(&s->dir, &s->env, e);
}

static void greet(struct session *s)
{
    char machine[256];

    if (s->opt->quiet)
        return;
    env_summary(&s->facts, machine, sizeof(machine));
    if (console_is_to_paste(&s->console))
        text_above(stdout, s->console.format, "bench %s (%s%s)  %s", build_version, build_commit,
                   build_dirty ? ", modified" : "", machine);
    else
        console_note(&s->console, "bench %s (%s%s)  %s", build_version, build_commit,
                     build_dirty ? ", modified" : "", machine);
}

static void tick(void *arg)
{
    struct session *const s = arg;

    progress_tick(&s->console.wait);
}

/* ---- the session -------------------------------------------------------------------------- */

enum status session_open(struct session *s, struct options *opt, struct err *e)
{
    *s = (struct session){.opt = opt};
    TRY(topo_open(&s->topo, NULL, e));
    TRY(child_setup_open(&s->setup, opt, e));
    s->setup.tick = tick;
    s->setup.tick_arg = s;
    s->console.wait.how = terminal_progress((enum progress)opt->progress, opt->quiet);
    env_gather(s->topo, &s->facts);
    opt->default_threads = env_threads(s->topo);
    s->setup.reference_threads = opt->default_threads;
    s->ticks = env_ticks();
    s->throttled = quota_throttled(&s->facts.quota);
    return OK;
}

void session_close(struct session *s)
{
    child_setup_close(&s->setup);
    topo_close(s->topo);
}

enum status session_begin(struct session *s, struct err *e)
{
    TRY(open_dir(s, e));
    s->started = true;
    greet(s);
    if (!s->opt->quiet && s->facts.row.load_1min > 0.3 * s->facts.topo.allowed_cpus)
        console_note(&s->console, "note: load %.2f on %d CPUs  -> stop other jobs, or expect noise",
                     s->facts.row.load_1min, s->facts.topo.allowed_cpus);
    if (!s->opt->quiet && isfinite(s->facts.quota.cpus))
        console_note(&s->console,
                     "note: a quota of %.3g CPUs (control group)  -> times of more threads are "
                     "those of the scheduler",
                     s->facts.quota.cpus);
    if (!s->opt->quiet && s->facts.topo.kinds > 1)
        console_note(&s->console,
                     "note: %d kinds of cores, %d of the fastest  -> --threads %d, or more wait "
                     "for the slow ones",
                     s->facts.topo.kinds, s->facts.topo.fast_cores, s->facts.topo.fast_cores);
    session_lock(s);
    return OK;
}

/* Precedence: interruption, files, wrong, failed, not trustworthy. */
int session_exit_code(const struct session *s, enum status st)
{
    if (st == E_INTERRUPTED)
        return signals_exit_code();
    if (st == E_IO || s->bad_file)
        return EXIT_BAD_FILE;
    if (s->rows[ROW_WRONG] > 0)
        return EXIT_WRONG_NUMBERS;
    if (st != OK || s->rows[ROW_FAILED] + s->rows[ROW_TIMEOUT] > 0)
        return EXIT_SOME_FAILED;
    if (s->opt->strict && s->warnings > 0)
        return EXIT_NOT_TRUSTWORTHY;
    if (s->rows[ROW_SKIPPED] > 0 && s->rows[ROW_OK] + s->rows[ROW_SUSPECT] == 0)
        return EXIT_NOTHING_TO_DO;
    return EXIT_FINE;
}

/* Close the tables in any case; the first failure to write decides. */
enum status session_end(struct session *s, enum status st, struct err *e)
{
    const struct env_ticks after = env_ticks();
    const int code = session_exit_code(s, st);
    char finished[TEXT_SIZE];
    struct err why;

    console_end(&s->console);
    utc_text(finished, time(NULL));
    env_row_end(&s->env, finished, code, env_steal_pct(&s->ticks, &after),
                quota_throttled(&s->facts.quota) - s->throttled);
    enum status io = rundir_env(&s->dir, &s->env, &why);
    if (io == OK)
        io = runjson_finish(s->dir.path, finished, code, s->rows, &why);
    if (io == OK)
        io = rundir_close(&s->dir, &why);
    else
        rundir_close(&s->dir, &(struct err){""});
    if (!s->dir.has_rows && !s->opt->resume && st != OK && st != E_INTERRUPTED)
        rundir_remove(&s->dir); /* refused before it began */
    console_flush(&s->console);
    if (io == OK && s->console.out_error && s->console.out_error != EPIPE)
        io = file_fail(&why, "write to", "standard output", s->console.out_error);
    clearerr(stdout); /* report it only once */
    if (io != OK && st != E_INTERRUPTED && st != E_IO) {
        *e = why;
        return io;
    }
    return st;
}
