/* SPDX-License-Identifier: MIT
 *
 * bench study: runs the jobs of a study one after the other, a row each, and prints the verdicts. A
 * finished job is a row of study.csv; a stopped training continues from its checkpoint, which lies
 * in the run's folder. */
#include "harness/cli/option_words.h"
#include "harness/command/child_requests.h"
#include "harness/command/commands.h"
#include "harness/export/export.h"
#include "harness/learn/train/train_files.h"
#include "harness/measure/study_verdict.h"
#include "study_list.h"
#include "study_rates.h"

#include <xxhash.h>

static const char jobs_folder[] = "jobs";

struct study_run {
    struct session s;
    struct study study;
    struct study_plan plan;
    struct table_file table;
    struct rows rows; /* of study.csv, those of this process too */
    double *expected; /* [plan.n] seconds */
    char path[FILE_PATH];
};

/* ---- rows ----------------------------------------------------------------------------------- */

static enum row_status status_of(const char *status)
{
    const int i = word_index(status, row_status_name);

    return i < 0 ? ROW_FAILED : (enum row_status)i;
}

static void put_skeleton(struct study_row *row, const struct study_model *m)
{
    const enum skeleton skeleton = (enum skeleton)m->o.skeleton;
    char rest[SKELETON_TEXT];

    if (!skeleton)
        return;
    skeleton_rest(rest, &m->config, skeleton);
    snprintf(row->skeleton, TEXT_SIZE, "%s%s%.100s", skeleton_name[skeleton], *rest ? " but " : "",
             rest);
}

/* The start of a job's row: what is known before it runs. */
static struct study_row begin_row(const struct study_run *w, const struct study_job *j, double lr)
{
    const struct study_model *const m = j->model;
    struct study_row row = study_row_empty();

    text_put(row.run_id, TEXT_SIZE, w->s.dir.run_id);
    text_put(row.host_id, TEXT_SIZE, w->s.facts.row.host_id);
    text_put(row.case_id, TEXT_SIZE, j->id);
    utc_text(row.started_at_utc, time(NULL));
    text_put(row.role, TEXT_SIZE, study_role_name[j->role]);
    text_put(row.contender, TEXT_SIZE, m->variant->name);
    row.baseline = m->baseline;
    text_put(row.control, TEXT_SIZE, m->control ? m->control->name : "");
    put_skeleton(&row, m);
    text_put(row.size, TEXT_SIZE, m->size->name);
    text_put(row.corpus, LINE_SIZE, m->corpus->name);
    row.seed = j->seed;
    row.lr = lr;
    row.effect = w->study.effect;
    text_put(row.variant, TEXT_SIZE, m->config.variant->name);
    text_put(row.backend, TEXT_SIZE, m->o.backends.v[0]);
    row.threads = m->o.threads.v[0];
    row.layers = m->o.layers.v[0];
    row.d_model = m->config.D;
    row.heads = m->config.H;
    row.d_inner = m->config.F;
    if (!*m->why)
        row.parameters = m->parameters;
    row.seq_tokens = m->o.seq.v[0];
    row.mem_tokens = m->o.mem.v[0];
    row.batch_size = m->o.batch.v[0];
    row.budget_tokens = j->budget ? j->budget : I64_EMPTY;
    row.steps = j->steps;
    text_put(row.rate_of, TEXT_SIZE, m->rates == m ? "" : m->rates->variant->name);
    return row;
}

/* Takes effect on the exit code; a rate that does not work is a result. */
static void count_row(struct study_run *w, const struct study_row *r)
{
    const enum row_status s = status_of(r->status);
    const bool tunes = strcmp(r->role, study_role_name[STUDY_TUNE]) == 0;

    w->s.rows[s != ROW_WRONG ? s : tunes ? ROW_OK : ROW_FAILED]++;
    w->s.console.done++;
}

static enum status write_row(struct study_run *w, const struct study_job *j, struct study_row *row,
                             enum row_status status, const char *detail, struct err *e)
{
    text_put(row->status, TEXT_SIZE, row_status_name[status]);
    text_put(row->status_detail, LINE_SIZE, detail);
    w->s.dir.has_rows = true;
    TRY(table_write(&w->table, row, e));
    TRY(grow_array(&w->rows.row, w->rows.n, sizeof(*row), e));
    ((struct study_row *)w->rows.row)[w->rows.n++] = *row;
    count_row(w, row);
    if (w->s.opt->quiet)
        return OK;
    char result[LINE_SIZE];
    if (status != ROW_OK)
        snprintf(result, sizeof(result), "%s: %.900s", row_status_name[status], detail);
    else if (j->model->corpus->is_task)
        snprintf(result, sizeof(result), "%s %.3f%s",
                 j->role == STUDY_TUNE ? "valid return" : "return",
                 j->role == STUDY_TUNE ? row->valid_return : row->test_return,
                 row->solved == 1 ? ", solved" : "");
    else if (j->role == STUDY_TUNE)
        snprintf(result, sizeof(result), "valid %.4f nats", row->valid_nats);
    else
        snprintf(result, sizeof(result), "test %.4f nats%s", row->test_nats,
                 study_collapsed(row) ? ", collapsed" : "");
    console_note(&w->s.console, "[%d/%d] %s %s %s%s  %s  seed %d  lr %g  %s  %s", w->s.console.done,
                 w->s.console.cases, row->contender, row->size, row->corpus,
                 study_budget_text(row).s, row->role, j->seed, row->lr, result,
                 isfinite(row->train_s) ? duration_text(row->train_s).s : "");
    return OK;
}

/* ---- one job -------------------------------------------------------------------------------- */

/* The weights of a training have its name, so that a final job finds those of the rate it was tuned
 * with. */
static void name_checkpoint(char name[TEXT_SIZE], const char *line)
{
    snprintf(name, TEXT_SIZE, "%s/%016llx.safetensors", jobs_folder,
             (unsigned long long)XXH3_64bits(line, strlen(line)));
}

/* Up to step `stop`; 0: to its end. */
static enum status train(struct study_run *w, const char *line, const char *ckpt, int stop,
                         struct err *e)
{
    struct options o = {0};
    struct bytes whole;
    FILE *const f = bytes_begin(&whole);

    fprintf(f, "%s --quiet --progress none", line);
    word_print_option(f, "ckpt", ckpt, '\0');
    if (stop)
        fprintf(f, " --stop-at %d", stop);
    fputs(access(ckpt, F_OK) == 0 ? " --resume" : "", f);
    enum status st = options_parse_again(&o, bytes_end(f, &whole), e);
    if (st == OK)
        st = training_run(&o, &w->s.setup, e);
    options_free(&o);
    free(whole.data);
    return st;
}

/* The start of a training that is another's up to j->stable: that one trains until there, and what it
 * is then is copied to `ckpt`. If it has passed the step, because this job failed before, the job
 * trains alone, to the same bits. */
static enum status branch(struct study_run *w, const struct study_job *j, double lr,
                          const char *ckpt, struct err *e)
{
    char *const line = study_train_line(j, lr, j->model->steps);
    char name[TEXT_SIZE], from[FILE_PATH];

    name_checkpoint(name, line);
    enum status st = file_join(from, w->s.dir.path, name, e);
    if (st == OK && trainer_saved_step(from) <= j->stable) {
        st = train(w, line, from, j->stable, e);
        if (st == OK)
            st = trainer_copy(from, ckpt, e);
    }
    free(line);
    return st;
}

/* A failure of one job is its row; what is returned ends the study. */
static enum status run_job(struct study_run *w, const struct study_job *j, double lr, struct err *e)
{
    struct study_row row = begin_row(w, j, lr);
    char name[TEXT_SIZE], ckpt[FILE_PATH];
    char *const line = study_train_line(j, lr, j->steps);
    struct err why;

    name_checkpoint(name, line);
    text_put(row.checkpoint, LINE_SIZE, name);
    text_put(row.repro, LINE_SIZE, line);
    enum status st = file_join(ckpt, w->s.dir.path, name, e);
    progress_begin(&w->s.console.wait, w->expected[j - w->plan.jobs],
                   "[%d/%d] training %s %s %s%s  %s  seed %d  lr %g", w->s.console.done + 1,
                   w->s.console.cases, row.contender, row.size, row.corpus,
                   study_budget_text(&row).s, row.role, j->seed, lr);
    enum status ran = st;
    if (st == OK && j->stable > 0 && access(ckpt, F_OK) != 0)
        ran = branch(w, j, lr, ckpt, &why);
    if (ran == OK)
        ran = train(w, line, ckpt, 0, &why);
    progress_end(&w->s.console.wait);
    free(line);
    if (st != OK)
        return st;
    if (ran == OK)
        ran = study_read_curve(&row, ckpt, &why);
    if (ran == OK && j->role == STUDY_FINAL)
        ran = study_score(&w->s, &w->study, j, &row, ckpt, &why);
    if (ran == E_INTERRUPTED || *w->s.setup.stop)
        return fail(e, E_INTERRUPTED, "interrupted");
    if (ran == E_NOMEM) {
        *e = why;
        return ran;
    }
    TRY(write_row(w, j, &row,
                  ran == OK              ? ROW_OK
                  : ran == E_WRONG       ? ROW_WRONG
                  : ran == E_UNSUPPORTED ? ROW_SKIPPED
                                         : ROW_FAILED,
                  ran == OK ? j->model->remark : why.msg, e));
    return j->budget && ran == OK ? trainer_forget(ckpt, e) : OK; /* nothing goes on from it */
}

/* ---- groups --------------------------------------------------------------------------------- */

/* A row for a job that cannot run. */
static enum status skip_job(struct study_run *w, const struct study_job *j, const char *why,
                            struct err *e)
{
    struct study_row row = begin_row(w, j, j->lr);

    return write_row(w, j, &row, ROW_SKIPPED, why, e);
}

/* At its own rate, or the best of its group or of the one that it takes its rate from. */
static enum status take_job(struct study_run *w, const struct study_job *j, struct err *e)
{
    double lr = j->lr;
    const char *why = j->model->why;

    if (study_is_done(&w->rows, j))
        return OK;
    if (isnan(lr) && !*why) {
        int n;
        const struct study_job *const job = study_group(&w->plan, j->model->rates, &n);
        const struct study_rate rate = study_rate_of(&w->rows, job, n);
        if (rate.open)
            return OK; /* the best rate is not known until --resume has tried all */
        lr = rate.best;
        why = rate.why;
    }
    if (*w->s.setup.stop)
        return fail(e, E_INTERRUPTED, "interrupted");
    return isnan(lr) ? skip_job(w, j, why, e) : run_job(w, j, lr, e);
}

/* The jobs that choose a group's rate: all, or, of a search, those that it asks for. What failed
 * before is tried again. */
static enum status tune(struct study_run *w, const struct study_job *job, int n, struct err *e)
{
    struct study_rate rate = {.next = NAN};

    for (int i = 0; i < n; i++)
        if (job[i].role == STUDY_TUNE && (!w->study.search || study_row_of(&w->rows, &job[i])))
            TRY(take_job(w, &job[i], e));
    while (w->study.search && job[0].role == STUDY_TUNE) {
        rate = study_rate_of(&w->rows, job, n);
        if (rate.open || isnan(rate.next))
            break;
        for (int i = 0; i < n; i++)
            if (job[i].role == STUDY_TUNE && job[i].lr == rate.next) {
                w->s.console.cases += job[i].maybe;
                TRY(take_job(w, &job[i], e));
            }
    }
    return OK;
}

/* The jobs of all variants at one size on one text: rates are chosen, then the variants train in
 * turns, seed by seed and budget by budget, so that what else the machine does over the hours falls on
 * all of them and times of one seed stand beside each other. */
static enum status run_place(struct study_run *w, const struct study_job *job, int n, struct err *e)
{
    const struct ints *const budgets = &w->study.budgets;
    int rounds = 0;

    for (int i = 0, of; i < n; i += of) {
        const struct study_job *const group = study_group(&w->plan, job[i].model, &of);
        TRY(tune(w, group, of, e));
    }
    for (int i = 0; i < n; i++)
        rounds = max_int(rounds, job[i].seed);
    for (int seed = 1; seed <= rounds; seed++)
        for (int k = 0; k == 0 || k < budgets->n; k++)
            for (int i = 0; i < n; i++)
                if (job[i].role == STUDY_FINAL && job[i].seed == seed &&
                    job[i].budget == (budgets->n ? budgets->v[k] : 0))
                    TRY(take_job(w, &job[i], e));
    return OK;
}

static bool same_place(const struct study_model *a, const struct study_model *b)
{
    return a->corpus == b->corpus && a->size == b->size;
}

static enum status run_all(struct study_run *w, struct err *e)
{
    const struct study_job *const job = w->plan.jobs;

    for (int i = 0, n; i < w->plan.n; i += n) {
        for (n = 1; i + n < w->plan.n && same_place(job[i + n].model, job[i].model); n++)
            ;
        TRY(run_place(w, job + i, n, e));
    }
    return OK;
}

static double left_s(const struct study_run *w)
{
    const struct study_job *const job = w->plan.jobs;
    double sum = 0;

    for (int i = 0; i < w->plan.n; i++)
        sum += study_is_done(&w->rows, &job[i]) || job[i].maybe ? 0 : w->expected[i];
    return sum;
}

/* ---- the run's folder ----------------------------------------------------------------------- */

static enum status files_equal(bool *equal, const char *a, const char *b, struct err *e)
{
    struct bytes then, now;

    TRY(file_read(&then, a, e));
    const enum status st = file_read(&now, b, e);
    *equal = st == OK && then.n == now.n && memcmp(then.data, now.data, now.n) == 0;
    free(then.data);
    free(now.data);
    return st;
}

/* The study of a run is the copy in its folder; a file named beside --resume must be the same. */
static enum status find_file(struct study_run *w, struct err *e)
{
    const struct options *const o = w->s.opt;
    char dir[FILE_PATH];

    if (!o->resume && o->words.n == 0)
        return fail(e, E_USAGE, "study needs a file that describes it  -> bench study FILE");
    if (!o->resume) {
        (void)options_locate(w->path, FILE_PATH, o->words.v[0]); /* reading says what is wrong */
        return OK;
    }
    TRY(rundir_find(dir, o->out, o->resume_dir, e));
    TRY(file_join(w->path, dir, study_copy, e));
    if (o->words.n == 0)
        return OK;
    if (access(w->path, F_OK) != 0) { /* killed before it was written: no job had begun */
        (void)options_locate(w->path, FILE_PATH, o->words.v[0]);
        return OK;
    }
    bool same;
    TRY(files_equal(&same, w->path, o->words.v[0], e));
    if (!same)
        return fail(e, E_USAGE,
                    "cannot resume %.300s: made of another study than %.200s  -> leave the file "
                    "out, or start a new run",
                    dir, o->words.v[0]);
    return OK;
}

static enum status open_folder(struct study_run *w, struct err *e)
{
    const struct table *const t = &tables[TABLE_STUDY];
    char path[FILE_PATH];

    TRY(file_join(path, w->s.dir.path, study_copy, e));
    if (access(path, F_OK) != 0) /* killed before it was written */
        TRY(file_replace(path, w->study.text, strlen(w->study.text), e));
    TRY(file_join(path, w->s.dir.path, jobs_folder, e));
    TRY(file_make_folder(path, e));
    TRY(file_join(path, w->s.dir.path, t->file, e));
    if (access(path, F_OK) != 0) /* new, or killed before it was made */
        TRY(table_create(&w->table, t, path, e));
    else
        TRY(table_resume(&w->table, t, path, &w->rows, e));
    w->s.dir.has_rows = w->s.dir.has_rows || w->rows.n > 0;
    for (size_t i = 0; i < w->rows.n; i++)
        if (row_is_final(t, (const struct study_row *)w->rows.row + i)) /* others run again */
            count_row(w, (const struct study_row *)w->rows.row + i);
    return OK;
}

/* ---- the command ---------------------------------------------------------------------------- */

static void show(const struct options *o, const struct rows *rows, bool ended)
{
    if (o->format == FORMAT_FOM) {
        export_study_fom(stdout, rows, ended);
        return;
    }
    struct study_verdicts v = study_verdicts_make(rows, o->threshold_pct / 100);
    study_verdicts_print(stdout, &v, (enum format)o->format);
    study_verdicts_free(&v);
}

/* The exit code of the run; as long as it has none, or if a row is worse, what its rows give. */
static int code_of(struct options *o, const struct run *r)
{
    const struct study_row *const row = r->study.row;
    const struct perplexity_row *const score = r->perplexity.row;
    const struct env_row *const env = r->env.row;

    if (r->ended && env->exit_code != EXIT_FINE)
        return (int)env->exit_code;
    struct study_run *const w = need_room(1, sizeof(*w));
    w->s.opt = o;
    for (size_t i = 0; i < r->study.n; i++)
        count_row(w, &row[i]);
    for (size_t i = 0; i < r->perplexity.n; i++)
        w->s.rows[status_of(score[i].status)]++;
    const int code = session_exit_code(&w->s, OK);
    free(w);
    return code;
}

static enum status read_and_show(struct run *run, struct options *o, const char *word,
                                 struct err *e)
{
    static const char *const taken[] = {"threshold", NULL};
    char dir[FILE_PATH];

    TRY(options_refuse(o, "the table of a run", taken, e));
    TRY(rundir_find(dir, ".", word, e));
    TRY(run_read_study(run, dir, e));
    show(o, &run->study, run->ended);
    return OK;
}

/* bench study RUN: what its rows show by now. */
static enum status show_run(struct options *o, const char *word, int *code, struct err *e)
{
    struct run run = {0};
    const enum status st = read_and_show(&run, o, word, e);

    if (st == OK)
        *code = code_of(o, &run);
    run_free(&run);
    return st;
}

/* What can be said before the first job. */
static void announce(struct study_run *w)
{
    struct study_verdicts v = study_verdicts_make(&w->rows, 0);
    const double sd = isfinite(v.noise) ? v.noise : w->study.sd;

    console_note(&w->s.console, "%d job%s, %d done; about %s", w->s.console.cases,
                 plural(w->s.console.cases), w->s.console.done, duration_text(left_s(w)).s);
    for (int i = 0; i < w->study.n_corpora; i++)
        if (!*w->study.corpora[i].test)
            console_note(&w->s.console,
                         "note: %s is one text: its last twentieth chooses the rates and compares  "
                         "-> give three to compare on another",
                         w->study.corpora[i].name);
    if (sd > 0)
        study_say_power(&w->s.console, &w->plan, sd);
    study_verdicts_free(&v);
}

static enum status run_jobs(struct study_run *w, struct err *e)
{
    TRY(open_folder(w, e));
    for (int i = 0; i < w->plan.n; i++)
        w->s.console.cases += !w->plan.jobs[i].maybe || study_row_of(&w->rows, &w->plan.jobs[i]);
    TRY(study_estimate(&w->expected, &w->s, &w->plan, e));
    if (!w->s.opt->quiet)
        announce(w);
    return run_all(w, e);
}

static enum status run_study(struct study_run *w, struct err *e)
{
    w->s.file_name = study_copy;
    w->s.file_text = w->study.text;
    TRY(session_begin(&w->s, e));
    enum status st = run_jobs(w, e);
    const enum status closed = table_close(&w->table, st == OK ? e : &(struct err){""});
    if (st == OK)
        st = closed;
    if (st == OK)
        show(w->s.opt, &w->rows, true);
    st = session_end(&w->s, st, e);
    if (st == E_INTERRUPTED)
        session_say_how_to_resume(&w->s);
    else if (!w->s.opt->quiet && w->s.dir.has_rows)
        console_note(&w->s.console, "wrote %s/{study,%senv}.csv", w->s.dir.path,
                     study_scores(&w->study) ? "perplexity," : "");
    return st;
}

static enum status study(struct study_run *w, struct options *o, struct err *e)
{
    TRY(session_open(&w->s, o, e));
    TRY(find_file(w, e));
    TRY(study_read(&w->study, w->path, e));
    TRY(study_plan_make(&w->plan, &w->study, o, e));
    TRY(console_open(&w->s.console, o, &tables[TABLE_STUDY], 0, e));
    if (!o->dry_run)
        return run_study(w, e);
    TRY(study_estimate(&w->expected, &w->s, &w->plan, e));
    study_list(&w->plan, w->expected, o);
    return OK;
}

enum status cmd_study(struct options *opt, int *code, struct err *e)
{
    TRY(session_continue(opt, e));
    if (opt->words.n > 0 && !opt->resume && file_is_folder(opt->words.v[0]))
        return show_run(opt, opt->words.v[0], code, e);
    struct study_run *const w = need_room(1, sizeof(*w));
    w->table.out.fd = -1;
    const enum status st = study(w, opt, e);
    *code = w->s.started ? session_exit_code(&w->s, st) : exit_of(st);
    session_close(&w->s);
    rows_free(&w->rows);
    study_plan_free(&w->plan);
    study_free(&w->study);
    free(w->expected);
    free(w);
    return st;
}
