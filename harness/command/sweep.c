/* SPDX-License-Identifier: MIT
 *
 * bench sweep: from the plan to the tables. The parent plans, starts children, and writes; it opens
 * no OpenMP region, no BLAS, and computes nothing that is measured. */
#include "commands.h"
#include "harness/compare/baseline.h"
#include "harness/learn/score/perplexity.h"
#include "run_summary.h"

struct sweep {
    struct session s;
    struct plan plan;
    struct peaks *peaks; /* one per distinct number of threads */
    int n_peaks;
    struct estimate estimate;
    int timed, noisy; /* rows */
    double noisiest_pct;
    int samples, preempted;
    int throttled;             /* rows */
    struct launch_noise noise; /* of the cases so far */
};

/* Share of the free memory that cases may take; the rest is for the page cache and a margin. */
static const double MEMORY_SHARE = 0.9;

/* ---- before the first case ---------------------------------------------------------------- */

/* Every number of threads must have its places before anything is measured. */
static enum status check_places(struct sweep *w, struct err *e)
{
    for (int i = 0; i < w->plan.n; i++) {
        const int n = w->plan.cases[i].threads;
        int *cpus = need_room((size_t)n, sizeof(*cpus));
        enum status st = topo_plan(w->s.topo, w->s.opt->pin, n, cpus, e);
        if (st == OK) /* binds nothing: does the node exist? */
            st = topo_membind(w->s.topo, w->s.opt->membind, cpus[0], NULL, 0, e);
        free(cpus);
        TRY(st);
    }
    return OK;
}

static const struct peaks *peaks_for(const struct sweep *w, int threads)
{
    for (int i = 0; i < w->n_peaks; i++)
        if (w->peaks[i].threads == threads)
            return &w->peaks[i];
    return NULL;
}

static enum status peaks_of(struct sweep *w, int threads, double seconds, struct peaks *out,
                            struct err *e)
{
    int *const cpus = need_room((size_t)threads, sizeof(*cpus));
    enum status st = topo_plan(w->s.topo, w->s.opt->pin, threads, cpus, e);

    if (st == OK)
        st = peaks_measure(&w->s.setup, threads, cpus, cpu_isa(), seconds, out, e);
    free(cpus);
    return st;
}

/* Peaks belong to a number of threads; a failure costs columns, not the run. */
static void measure_peaks(struct sweep *w)
{
    const double seconds = fmin(PEAK_TIME_S, w->s.opt->max_time_s); /* no more than for a case */

    progress_begin(&w->s.console.wait, 0, "measuring the peaks of this machine");
    for (int i = 0; i < w->plan.n; i++) {
        const int n = w->plan.cases[i].threads;
        struct err why;
        if (peaks_for(w, n))
            continue;
        enum status st = peaks_of(w, n, seconds, &w->peaks[w->n_peaks], &why);
        if (st == OK && w->peaks[w->n_peaks].busy > 0 && !w->s.opt->quiet)
            console_note(&w->s.console,
                         "other programs kept interrupting the measurement of peaks: %%peak stays "
                         "empty  -> stop other jobs; bench topo --roofline repeats it");
        if (st == OK)
            w->n_peaks++;
        else
            session_warn(&w->s, why.msg);
    }
    progress_end(&w->s.console.wait);
}

/* ---- how long it will take ----------------------------------------------------------------- */

static bool is_done(void *arg, const struct bench_case *c)
{
    const struct sweep *w = arg;

    return rundir_done(&w->s.dir, TABLE_LATENCY, c->case_id);
}

/* Perplexities belong to no group: the first shard has them. */
static bool scores_models(const struct sweep *w)
{
    const char *shard = w->s.opt->shard;

    return !shard || strncmp(shard, "1/", 2) == 0;
}

static void tell_plan(struct sweep *w)
{
    const struct estimate *t = &w->estimate;
    int beyond = 0;

    for (int i = 0; i < w->plan.n; i++)
        beyond += case_beyond(&w->plan.cases[i]);
    if (beyond > 0)
        console_note(
            &w->s.console,
            "warning: %d case%s of more tokens at once than the %d that the model was made for "
            "(its config.json)  -> --seq and --mem of that together, to time it as it is used",
            beyond, plural(beyond), w->s.opt->longest);
    if (w->s.opt->quiet)
        return;
    const struct duration_text all = duration_text(w->s.console.expected_s),
                               checks = duration_text(t->checks);
    console_note(&w->s.console, "%d case%s in %d group%s, about %s%s%s%s", w->plan.n,
                 w->plan.n == 1 ? "" : "s", w->plan.groups, w->plan.groups == 1 ? "" : "s", all.s,
                 t->checks >= 1 ? ", including " : "", t->checks >= 1 ? checks.s : "",
                 t->checks >= 1 ? " of checks" : "");
}

/* What the defaults leave out. */
static void tell_left_out(struct sweep *w)
{
    const struct options *const o = w->s.opt;

    if (o->quiet)
        return;
    if (!options_given(o, "backend") && !o->quick)
        console_note(&w->s.console,
                     "note: ref, the slow reference, is left out  -> --backend auto includes it; "
                     "--quick: a first look%s",
                     o->argc <= 1 ? ", some 15 s" : "");
}

static void estimate_by(struct sweep *w, const struct speeds *speeds)
{
    free(w->estimate.cases);
    estimate_plan(&w->estimate, &w->plan, speeds, is_done, w);
    w->s.console.expected_s = w->estimate.total;
    const double scores = scores_models(w) ? sweep_perplexity_s(&w->s, &w->plan, speeds) : 0;
    w->s.console.expected_s += isfinite(scores) ? scores : 0;
}

/* Does the resumed run have all its rows? */
static bool is_complete(struct sweep *w)
{
    const struct speeds any = {
        .reference = reference_rates_least, .threads = 1, .start_s = 1, .peaks = w->peaks};

    for (int i = 0; i < w->plan.n; i++)
        if (!is_done(w, &w->plan.cases[i]))
            return false;
    return !scores_models(w) || sweep_perplexity_s(&w->s, &w->plan, &any) == 0;
}

/* Rates are measured, which takes some tenths of a second, unless the plan is short without. */
static enum status estimate(struct sweep *w, struct err *e)
{
    const double short_s = 2;
    struct speeds speeds = {.reference = reference_rates_least,
                            .threads = max_int(1, w->s.setup.reference_threads),
                            .start_s = 0.05,
                            .slow =
                                load_slows(w->s.facts.row.load_1min, w->s.setup.reference_threads,
                                           w->s.facts.topo.allowed_cpus),
                            .peaks = w->peaks,
                            .n_peaks = w->n_peaks};

    estimate_by(w, &speeds);
    if (w->s.console.expected_s > short_s) {
        const int64_t start = clock_wall_ns();
        progress_begin(&w->s.console.wait, 0, "measuring the speed of the reference");
        const enum status st = reference_rates_in_child(&w->s.setup, &speeds.reference, e);
        progress_end(&w->s.console.wait);
        TRY(st);
        speeds.start_s = (double)(clock_wall_ns() - start) * 1e-9 - speeds.reference.spent_s;
        estimate_by(w, &speeds);
    }
    tell_plan(w);
    return OK;
}

/* ---- hooks of a group --------------------------------------------------------------------- */

static enum status on_sample(void *arg, const struct result *res, const struct sample *s,
                             struct err *e)
{
    struct sweep *w = arg;
    struct sample_row row = sample_row_empty();

    text_put(row.run_id, sizeof(row.run_id), w->s.dir.run_id);
    text_put(row.case_id, sizeof(row.case_id), res->bcase->case_id);
    row.sample = res->n - 1;
    row.round = s->round;
    row.wall_ns = s->wall_ns;
    row.cpu_ns = s->cpu_ns;
    row.calls = s->calls;
    row.involuntary_switches = s->involuntary_switches;
    row.disturbed = s->disturbed;
    row.launch = s->launch;
    console_progress(&w->s.console, res);
    return samples_write(&w->s.dir.samples, &row, e);
}

static double on_wait(void *arg, const struct bench_case *c, enum group_wait what)
{
    struct sweep *w = arg;
    struct progress_line *const show = &w->s.console.wait;
    const struct case_estimate *t = estimate_of(&w->estimate, c);
    const double place = t->gradients + t->call;
    char label[160];

    case_label(c, label, sizeof(label));
    switch (what) {
    case WAIT_REFERENCE:
        progress_begin(show, t->reference, "checking %.*s against the reference",
                       (int)(strlen(label) - strlen(c->backend->name) - 1), label);
        return t->reference;
    case WAIT_PLACE:
        progress_begin(show, place, "%s %s", c->opt->check ? "checking" : "starting", label);
        return place;
    case WAIT_AGAIN:
        progress_begin(show, t->call, "starting %s again", label);
        return t->call;
    case WAIT_MEASURE:
        progress_end(show);
    }
    return 0;
}

static void on_warning(void *arg, const char *text)
{
    struct sweep *w = arg;

    session_warn(&w->s, text);
}

/* ---- rows of a group ---------------------------------------------------------------------- */

static double ref_median(const struct result *results, int n, const struct result *of)
{
    for (int i = 0; i < n; i++)
        if (results[i].bcase->backend == &backend_ref && results[i].n > 0 &&
            results[i].bcase->mem_kind == of->bcase->mem_kind &&
            case_same_problem(results[i].bcase, of->bcase))
            return results[i].sum.median;
    return NAN;
}

/* Noise far above the goal is a warning of its row; the last lines tell of all together. */
static void count_noise(struct sweep *w, const struct result *res)
{
    w->timed += res->status == ROW_OK;
    if (!result_is_noisy(res))
        return;
    w->noisy++;
    w->s.warnings++;
    w->noisiest_pct = fmax(w->noisiest_pct, result_noise_pct(res));
}

static void complain_if_wrong(struct sweep *w, const struct result *res)
{
    char label[160];

    if (res->status != ROW_WRONG)
        return;
    case_label(res->bcase, label, sizeof(label));
    console_note(&w->s.console,
                 "bench: results differ from the reference, so no time was recorded: %s %s  -> "
                 "bench rerun %s -v",
                 label, res->detail, res->bcase->case_id);
}

/* -v: what the screen's columns leave out. */
static void tell_row(struct sweep *w, const struct result *res, const struct latency_row *row)
{
    console_note(&w->s.console, "  case %s: %s", row->case_id, row->repro);
    if (res->status == ROW_OK)
        console_note(&w->s.console,
                     "    %s, products of %s, rows of %s, CPUs %s; %d samples of %lld call%s, %d "
                     "preempted, ended by %s; %s",
                     row->impl, row->gemm_from, row->rows_from, row->cpus, res->sum.samples,
                     (long long)row->inner_calls, plural((long)row->inner_calls),
                     res->sum.disturbed, row->stop_reason,
                     isnan(row->max_rel_err) ? "not checked" : "checked");
}

/* Its peaks may be of a slower moment, or of few milliseconds: they are measured again, at length. */
static void judge_again(struct sweep *w, struct result *res, const struct roofline *y)
{
    struct peaks *const p = &w->peaks[y->peaks - w->peaks], now;

    if (peaks_of(w, p->threads, PEAK_TIME_S, &now, &(struct err){""}) != OK || now.busy > 0)
        return;
    *p = now;
    if (p == &w->peaks[w->n_peaks - 1]) /* those of env.csv */
        env_row_peaks(&w->s.env, p);
    res->status = ROW_OK;
    remarks_print(res->detail, sizeof(res->detail), res->remarks);
    result_judge(res, y);
}

static enum status write_rows(struct sweep *w, struct result *res, double ref_ns, struct err *e)
{
    const struct roofline y = {peaks_for(w, res->bcase->threads), &w->s.facts.topo, ref_ns};
    struct key_row key;
    struct memory_row memory;
    struct latency_row *const latency = need_room(1, sizeof(*latency));

    result_judge(res, &y);
    if (res->status == ROW_SUSPECT)
        judge_again(w, res, &y);
    result_key(&key, res, w->s.dir.run_id, w->s.facts.row.host_id);
    result_memory(&memory, res, &key);
    result_latency(latency, res, &key, &y);
    enum status st = rundir_write(&w->s.dir, TABLE_MEMORY, &memory, e);
    if (st == OK) /* last: a case without its latency row is not done */
        st = rundir_write(&w->s.dir, TABLE_LATENCY, latency, e);
    if (st != OK) {
        free(latency);
        return st;
    }
    console_row(&w->s.console, res, latency);
    console_spent(&w->s.console, case_estimate_s(estimate_of(&w->estimate, res->bcase)));
    if (w->s.opt->verbose > 0)
        tell_row(w, res, latency);
    free(latency);
    complain_if_wrong(w, res);
    count_noise(w, res);
    w->s.rows[res->status]++;
    w->samples += res->sum.samples;
    w->preempted += res->sum.disturbed;
    w->throttled += res->throttled > 0;
    w->s.warnings += (res->throttled > 0) + (res->status == ROW_SUSPECT);
    env_row_library(&w->s.env, res->report.core, res->report.config);
    return OK;
}

static enum status run_group(struct sweep *w, const struct bench_case *const *cases, int n,
                             struct err *e)
{
    const struct group_hooks hooks = {on_sample, on_warning, on_wait, w};
    struct result *results = need_room((size_t)n, sizeof(*results));
    struct err why;

    env_gather(w->s.topo, &w->s.facts);
    w->s.setup.memory_bytes = MEMORY_SHARE * (double)w->s.facts.row.memory_free_bytes;
    progress_begin(&w->s.console.wait, 0, "starting %d process%s", n, n == 1 ? "" : "es");
    enum status st = group_measure(cases, n, &w->s.setup, &hooks, results, e);
    enum status io = samples_flush(&w->s.dir.samples, &why);
    for (int i = 0; i < n; i++)
        launch_noise_add(&w->noise, results[i].sum.between_pct / 100, results[i].sum.launches);
    for (int i = 0; i < n && io == OK; i++) {
        result_widen(&results[i], &w->noise);
        io = write_rows(w, &results[i], ref_median(results, n, &results[i]), &why);
    }
    for (int i = 0; i < n; i++)
        result_free(&results[i]);
    free(results);
    if (io == OK)
        return st;
    if (st != E_INTERRUPTED) { /* a disk that cannot be written takes precedence over everything
                                * else */
        *e = why;
        return io;
    }
    console_note(&w->s.console, "bench: %s", why.msg);
    return st;
}

/* An interruption ends it. */
static void cool_down(const struct sweep *w)
{
    enum { STEP_MS = 50 };

    for (double ms = 1000 * w->s.opt->cool_down_s; ms > 0 && !*w->s.setup.stop; ms -= STEP_MS)
        clock_sleep_ms(fmin(ms, STEP_MS));
}

/* Every group of the plan, without the cases that a resumed run already has. */
static enum status run_all(struct sweep *w, struct err *e)
{
    const struct bench_case **cases =
        need_room((size_t)w->plan.n, sizeof(const struct bench_case *));
    enum status st = OK;
    int measured = 0; /* groups */

    for (int i = 0; i < w->plan.n && st == OK;) {
        const int group = w->plan.cases[i].group;
        int n = 0;
        for (; i < w->plan.n && w->plan.cases[i].group == group; i++)
            if (rundir_done(&w->s.dir, TABLE_LATENCY, w->plan.cases[i].case_id))
                w->s.console.cases--;
            else
                cases[n++] = &w->plan.cases[i];
        if (n > 0) {
            if (measured++ > 0)
                cool_down(w);
            st = run_group(w, cases, n, e);
        }
        if (st == OK && w->s.opt->fail_fast && w->s.rows[ROW_FAILED] + w->s.rows[ROW_WRONG] > 0)
            break;
    }
    free(cases);
    return st;
}

/* ---- the command -------------------------------------------------------------------------- */

/* How far the numbers can be trusted. */
static void tell_noise(struct sweep *w)
{
    if (!w->s.opt->check && w->timed > 0)
        console_note(&w->s.console, "!: not compared with the reference (--no-check)");
    if (w->timed > 0 && case_launches(w->s.opt) == 1)
        console_note(&w->s.console, "note: intervals are within one launch of each case; another "
                                    "may lie outside  -> give --launches 3");
    if (w->throttled > 0)
        console_note(&w->s.console,
                     "warning: the quota of %.3g CPUs stopped %d row%s (throttled): times are "
                     "those of the scheduler  -> raise the quota, or fewer --threads",
                     w->s.facts.quota.cpus, w->throttled, plural(w->throttled));
    else if (w->samples > 0 && w->preempted == w->samples)
        console_note(&w->s.console, "every sample was preempted by other processes: times are "
                                    "those of a busy machine  -> stop other jobs");
    else if (w->preempted > 0)
        console_note(
            &w->s.console,
            "%d of %d samples were preempted by other processes (kept in the samples file)",
            w->preempted, w->samples);
    if (w->noisy > 0)
        console_note(&w->s.console,
                     "warning: %d of %d row%s noisy (~): %s%s, the goal is %s  -> stop other jobs "
                     "or raise --max-time",
                     w->noisy, w->timed, plural(w->timed),
                     w->noisiest_pct > 0 ? "up to " : "too few samples for an interval",
                     w->noisiest_pct > 0 ? units_pct(w->noisiest_pct).s : "",
                     units_pct(w->s.opt->target_ci_pct).s);
}

static void say_goodbye(struct sweep *w, int code)
{
    if (!w->s.opt->quiet)
        tell_noise(w);
    run_summary(&w->s);
    if (code >= EXIT_SIGINT) {
        session_say_how_to_resume(&w->s);
    } else if (!w->s.opt->quiet) {
        console_note(&w->s.console, "wrote %s/{latency,memory,perplexity,env}.csv", w->s.dir.path);
        say_what_next(&w->s);
    }
}

static enum status prepare(struct sweep *w, struct options *o, struct err *e)
{
    TRY(plan_published(o, e));
    TRY(session_open(&w->s, o, e));
    TRY(plan_asked(&w->plan, o, e));
    if (w->plan.n > 0) {
        TRY(check_places(w, e));
        TRY(sweep_perplexity_check(o, &w->plan, e));
    }
    TRY(console_open(&w->s.console, o, &tables[TABLE_LATENCY], w->plan.n, e));
    console_plan(&w->s.console, w->plan.cases, w->plan.n);
    w->peaks = need_room((size_t)max_int(1, w->plan.n), sizeof(*w->peaks));
    return OK;
}

/* A document is printed again; verdicts are not. */
static enum status finish_complete(struct sweep *w, struct err *e)
{
    const enum status st = session_end(&w->s, OK, e);

    if (console_at_end(w->s.console.format))
        run_summary(&w->s);
    if (!w->s.opt->quiet) {
        console_note(&w->s.console, "%s is complete, nothing to resume", w->s.dir.path);
        say_what_next(&w->s);
    }
    return st;
}

static enum status measure_rest(struct sweep *w, struct err *e)
{
    tell_left_out(w);
    say_same_models(&w->s, &w->plan);
    measure_peaks(w);
    if (w->n_peaks > 0 && w->peaks[w->n_peaks - 1].busy == 0)
        env_row_peaks(&w->s.env, &w->peaks[w->n_peaks - 1]);
    TRY(rundir_env(&w->s.dir, &w->s.env, e));
    TRY(estimate(w, e));
    TRY(run_all(w, e));
    return scores_models(w) ? sweep_perplexity(&w->s, &w->plan, e) : OK;
}

static enum status measure_all(struct sweep *w, struct err *e)
{
    TRY(session_begin(&w->s, e));
    if (w->s.opt->resume && is_complete(w))
        return finish_complete(w, e);
    const enum status st = session_end(&w->s, measure_rest(w, e), e);
    say_goodbye(w, session_exit_code(&w->s, st));
    return st;
}

/* Measure, unless the named baselines make it pointless. */
static enum status sweep_all(struct sweep *w, struct options *o, int *code, struct err *e)
{
    TRY(prepare(w, o, e));
    if (w->plan.n == 0) {
        fprintf(stderr, "bench: no cases to measure  -> see: bench list cases\n");
        *code = EXIT_NOTHING_TO_DO;
        return OK;
    }
    TRY(baseline_ready(o, w->s.facts.row.host_id, code, e));
    const enum status st = measure_all(w, e);
    *code = w->s.started ? session_exit_code(&w->s, st) : exit_of(st);
    return *code == EXIT_FINE ? baseline_finish(o, w->s.dir.path, code, e) : st;
}

/* A dry run measures none. */
static void assume_peaks(struct sweep *w)
{
    for (int i = 0; i < w->plan.n; i++)
        if (!peaks_for(w, w->plan.cases[i].threads))
            w->peaks[w->n_peaks++] = peaks_assumed(w->plan.cases[i].threads);
}

static enum status estimate_alone(struct sweep *w, struct options *o, struct err *e)
{
    TRY(session_open(&w->s, o, e));
    TRY(plan_asked(&w->plan, o, e));
    w->peaks = need_room((size_t)w->plan.n, sizeof(*w->peaks));
    assume_peaks(w);
    return estimate(w, e);
}

/* --dry-run: the cases, and about how long they would take. */
static enum status dry_run(struct sweep *w, struct options *o, int *code, struct err *e)
{
    TRY(list_cases(o, code, e));
    return *code == EXIT_FINE && !o->quiet ? estimate_alone(w, o, e) : OK;
}

enum status cmd_sweep(struct options *opt, int *code, struct err *e)
{
    TRY(session_continue(opt, e));
    struct sweep *const w = need_room(1, sizeof(*w));
    const enum status st = opt->dry_run ? dry_run(w, opt, code, e) : sweep_all(w, opt, code, e);
    plan_free(&w->plan);
    session_close(&w->s);
    free(w->peaks);
    free(w->estimate.cases);
    free(w);
    return st;
}
