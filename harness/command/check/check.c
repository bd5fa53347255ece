/* SPDX-License-Identifier: MIT
 *
 * bench check: correctness only. Golden files through every backend, or every operation and every
 * variant on every backend over awkward shapes against the double reference. Each backend runs in a
 * process of its own, and after a crash in another one from the next check on, so that it costs one
 * line, not the run (--isolate none: in this process). */
#include "check_shapes.h"
#include "finding.h"
#include "golden_files.h"
#include "harness/check/golden.h"
#include "harness/check/op_cases.h"
#include "harness/command/child_requests.h"
#include "harness/command/commands.h"
#include "harness/util/progress.h"
#include "harness/worker/reference.h"
#include "variants/backends/outside.h"
#include "variants/base/printable.h"

struct check {
    const struct options *opt;
    struct tally tally;
    int bad_files;
    char now[256];             /* what is being checked */
    char group[96];            /* and of which kind: those of a kind may fail alike */
    struct failures *failures; /* of the parent */
    struct progress_line show; /* of one backend, in the process that checks it */
    int begun, total;          /* checks of it */
    int from; /* the first one that is to be made: a child before has done others */
    struct protocol *protocol; /* of a child, to its parent; NULL = this process is the parent */
    struct golden_files files; /* golden files; none = the awkward shapes */
};

/* The next check: false if it is not to be made. Reported first, so that a crash can be attributed; a
 * lost parent is noticed elsewhere. */
static bool say_now(struct check *c, const char *backend, const char *what, const char *group)
{
    if (c->begun++ < c->from)
        return false;
    snprintf(c->group, sizeof(c->group), "%s", group);
    printable_copy(c->now, sizeof(c->now), what); /* one line, whatever the name of a file */
    progress_at(&c->show, (double)(c->begun - 1) / max_int(1, c->total), "checking %s: %s", backend,
                c->now);
    if (c->protocol)
        protocol_write(c->protocol, &(struct err){""}, "now %s\t%s", c->group, c->now);
    return true;
}

/* Report the result, so that a crash does not lose it. */
static void say_tally(const struct check *c)
{
    const struct tally *t = &c->tally;

    fflush(stdout);
    if (c->protocol)
        protocol_write(c->protocol, &(struct err){""}, "tally %d %d %d %d %d", t->tensors,
                       t->passed, t->failed, t->skipped, c->bad_files);
}

/* ---- golden files ------------------------------------------------------------------------- */

static void say_finding(struct check *c, const struct finding *f)
{
    char text[FAILURE_TEXT];

    terminal_line_clear(&c->show.line); /* before a result is printed */
    if (f->result != FINDING_FAILED || !findings_are_counted(c->opt)) {
        finding_print(c->opt, f);
    } else {
        failure_text(text, f);
        if (c->protocol)
            protocol_write(c->protocol, &(struct err){""}, "failed %s", text);
        else
            failure_take(c->failures, text);
    }
    say_tally(c);
}

static void print_verdict(void *arg, const struct verdict *v)
{
    struct check *c = arg;
    char what[FILE_PATH + 128];

    snprintf(what, sizeof(what), "%s %s", v->file, v->tensor);
    say_finding(c, &(struct finding){
                       .result = v->skipped             ? FINDING_SKIPPED
                                 : v->error <= v->limit ? FINDING_PASSED
                                                        : FINDING_FAILED,
                       .backend = v->backend,
                       .kind = "golden",
                       .subject = what,
                       .error = v->skipped ? NAN : v->error,
                       .limit = v->skipped ? NAN : v->limit,
                       .detail = v->skipped ? v->skipped : "",
                   });
}

/* A check that could not compare anything, alike others of the group. */
static void say_failure(struct check *c, const char *backend, const char *kind, const char *what,
                        const char *group, const char *why)
{
    c->tally.failed++;
    say_finding(c,
                &(struct finding){FINDING_FAILED, backend, kind, what, NULL, NAN, NAN, why, group});
}

/* Count the check that was made, and say what it found: `f` but for its result. */
static void say_checked(struct check *c, bool failed, bool skipped, struct finding *f)
{
    c->tally.tensors++;
    c->tally.failed += failed;
    c->tally.skipped += skipped;
    c->tally.passed += !failed && !skipped;
    f->result = failed ? FINDING_FAILED : skipped ? FINDING_SKIPPED : FINDING_PASSED;
    say_finding(c, f);
}

/* A folder may have files of other kinds. */
static void say_other(struct check *c, int file)
{
    c->files.at[file].other = true;
    if (c->protocol)
        protocol_write(c->protocol, &(struct err){""}, "other %d", file);
}

static void check_golden(struct check *c, const struct engine *g)
{
    c->total = c->files.n;
    for (int i = 0; i < c->files.n; i++) {
        struct err e;
        if (!say_now(c, g->backend->name, c->files.at[i].path, ""))
            continue;
        const enum status st = golden_run(g, c->files.at[i].path, &c->tally, print_verdict, c, &e);
        if (st == E_UNSUPPORTED && c->files.folder)
            say_other(c, i);
        if (st == OK || c->files.at[i].other)
            continue;
        c->bad_files++;
        say_finding(c, &(struct finding){FINDING_FAILED, g->backend->name, "golden",
                                         c->files.at[i].path, NULL, NAN, NAN, e.msg, NULL});
    }
}

/* ---- one case ------------------------------------------------------------------------------ */

/* One run; its expected gradients, if any, are kept for the comparison if wanted. */
static enum status run_job(struct job *j, const struct bench_case *c, float **gradients,
                           struct err *e)
{
    TRY(job_open(j, c, e));
    TRY(job_place(j, NULL, NULL, e));
    if (gradients)
        TRY(job_expect_gradients(j, gradients, e));
    job_run(j);
    return OK;
}

/* The output against the reference's, and the gradients, if any, against those expected: the error,
 * and the rest of it in `text`. */
static bool agrees(const struct job *got, const struct job *want, const float *gradients,
                   struct finding *f, char *text, size_t size)
{
    struct agreement out, grad = {.within = true};

    if (got->n_out != want->n_out) {
        snprintf(text, size, "%zu numbers, the reference has %zu", got->n_out, want->n_out);
        return false;
    }
    const struct checked_rows all = job_rows(got, got->out_shape[1]);
    struct err e;
    if (job_check_output(got, &all, want->out, &out, &e) != OK) {
        snprintf(text, size, "%.300s", e.msg);
        return false;
    }
    const struct bound bound = job_bound(got->bcase);
    snprintf(text, size, "nmse %.1e", out.nmse);
    if (!(out.nmse <= bound.nmse))
        text_append(text, size, " (limit %.1e)", bound.nmse);
    f->error = out.max_rel;
    f->limit = bound.rel;
    if (!gradients)
        return out.within;
    job_check_gradients(got, gradients, &grad);
    text_append(text, size, "; %s: max_rel_err %.2e, nmse %.1e",
                grad.where[0] ? grad.where : "gradients", grad.max_rel, grad.nmse);
    return out.within && grad.within;
}

static void check_case(struct check *c, const struct bench_case *bcase)
{
    struct bench_case ref = {0};
    struct options opt;
    struct job *const job = need_room(2, sizeof(*job)), *const got = job, *const want = job + 1;
    char label[192], text[320], group[96];
    float *gradients = NULL;
    struct err e;

    case_label(bcase, label, sizeof(label));
    text_append(label, sizeof(label), " batch=%d", bcase->batch);
    snprintf(group, sizeof(group), "%s %s%s", bcase->variant->name, workload_name[bcase->workload],
             bcase->phase == PHASE_FWD ? "" : " backward");
    if (!say_now(c, bcase->backend->name, label, group)) {
        free(job);
        return;
    }
    enum status st = case_as_ref(&ref, &opt, bcase, 0, &e);
    if (st == OK)
        st = run_job(want, &ref, NULL, &e);
    if (st == OK)
        st = run_job(got, bcase, &gradients, &e);
    struct finding f = {.backend = bcase->backend->name,
                        .kind = "case",
                        .subject = label,
                        .case_id = bcase->case_id,
                        .group = group,
                        .error = NAN,
                        .limit = NAN};
    const bool good = st == OK && agrees(got, want, gradients, &f, text, sizeof(text));
    const bool skipped = st == E_UNSUPPORTED; /* a reason that only its weights show */
    f.detail = st == OK ? text : e.msg;
    say_checked(c, !good && !skipped, skipped, &f);
    free(gradients);
    job_close(got);
    job_close(want);
    free(job);
    free(ref.repro);
}

/* ---- operations --------------------------------------------------------------------------- */

/* A few dozen cases of each operation; the tests run all. */
static void check_operations(struct check *c, const struct engine *g)
{
    enum { CASES = 48 };

    for (int op = 0; op_case_name(op); op++) {
        char what[64];
        snprintf(what, sizeof(what), "operation %s", op_case_name(op));
        if (!say_now(c, g->backend->name, what, what))
            continue;
        struct op_result r;
        op_check(g, 1, op, 1 + op_case_count(op) / CASES, &r);
        const bool failed = r.failed > 0, skipped = !failed && r.refused[0];
        char text[sizeof(r.first) + 64];
        if (failed)
            snprintf(text, sizeof(text), "%d of %d cases, %s", r.failed, r.cases, r.first);
        else
            snprintf(text, sizeof(text), "%d case%s", r.cases, plural(r.cases));
        say_checked(c, failed, skipped,
                    &(struct finding){.backend = g->backend->name,
                                      .kind = "operation",
                                      .subject = op_case_name(op),
                                      .error = NAN,
                                      .limit = NAN,
                                      .detail = skipped ? r.refused : text,
                                      .group = what});
    }
}

/* ---- shapes -------------------------------------------------------------------------------- */

static void check_shape(struct check *c, const struct backend *b, const struct shape *s)
{
    if (s->st == E_UNSUPPORTED) /* these variants do not support the shape */
        return;
    if (s->st != OK)
        say_failure(c, b->name, "case", s->line, NULL, s->why.msg);
    for (int k = 0; k < s->plan.n; k++)
        if (!s->plan.cases[k].unsupported)
            check_case(c, &s->plan.cases[k]);
}

/* Operations, then shapes. All shapes are planned first, to know how many checks there are. */
static void check_all_of(struct check *c, const struct engine *g)
{
    struct shape *const all = need_room((size_t)check_shape_count, sizeof(*all));

    for (int op = 0; op_case_name(op); op++)
        c->total++;
    for (int i = 0; i < check_shape_count; i++) {
        shape_open(&all[i], c->opt, g->backend, g->threads, check_shapes[i]);
        c->total += all[i].plan.n;
    }
    check_operations(c, g);
    for (int i = 0; i < check_shape_count; i++) {
        check_shape(c, g->backend, &all[i]);
        shape_close(&all[i]);
    }
    free(all);
}

/* ---- one backend -------------------------------------------------------------------------- */

static void check_backend(struct check *c, const struct backend *b)
{
    enum { THREADS = 2 };
    struct arena products = {0};
    struct engine g;
    struct err e;

    c->begun = c->total = 0;
    c->show.how = terminal_progress((enum progress)c->opt->progress, c->opt->quiet);
    progress_begin(&c->show, 0, "checking %s", b->name);
    enum status st = engine_open(&g, b->name, THREADS, c->opt->impl, &e);
    if (st == OK && !c->files.at)
        st = engine_place(&g, &products, &e);
    if (st != OK)
        say_failure(c, b->name, "backend", "open", NULL, e.msg);
    else if (c->files.at)
        check_golden(c, &g);
    else
        check_all_of(c, &g);
    arena_release(&products);
    progress_end(&c->show);
    /* As in checkasm: nothing is timed after a failure. */
    if (c->opt->bench && c->tally.failed == 0)
        op_bench(b);
    fflush(stdout);
}

/* ---- one backend, one child ---------------------------------------------------------------- */

static enum status obey_check(struct server *s, const char *words, struct err *e)
{
    struct options o;
    struct check c = {.opt = &o, .protocol = &s->protocol};
    char name[64];
    int bench = 0, at = 0;

    if (sscanf(words, "%63s %d %d %n", name, &bench, &c.from, &at) < 3 || at == 0 ||
        !backend_find(name))
        return fail(e, E_CHILD, "unexpected request: check %.40s", words);
    enum status st = options_parse_again(&o, words + at, e);
    o.bench = o.bench && bench;
    if (st == OK)
        cpu_limit((enum isa)o.max_isa);
    if (st == OK && o.golden)
        st = golden_files_list(&c.files, o.golden, e);
    if (st == OK)
        check_backend(&c, backend_find(name));
    golden_files_free(&c.files);
    options_free(&o);
    return st == OK ? protocol_write(&s->protocol, e, "end") : st;
}

const struct request request_check = {"check", obey_check};

static void clear_childs_line(const struct check *c)
{
    terminal_line_clear(&(struct terminal_line){
        terminal_progress((enum progress)c->opt->progress, c->opt->quiet) == PROGRESS_BAR});
}

/* Messages of a child: the parent's `now`, and the tally of this backend. */
static void hear(void *arg, const char *name, const char *value)
{
    struct check *const c = arg;
    struct tally *const t = &c->tally;

    const size_t group = strcspn(value, "\t");

    if (strcmp(name, "now") == 0) {
        snprintf(c->group, sizeof(c->group), "%.*s", (int)group, value);
        snprintf(c->now, sizeof(c->now), "%s", value + group + (value[group] == '\t'));
        c->begun++;
    }
    if (strcmp(name, "failed") == 0) {
        clear_childs_line(c);
        failure_take(c->failures, value);
        fflush(stdout);
    }
    const int file = atoi(value);
    if (strcmp(name, "other") == 0 && file >= 0 && file < c->files.n)
        c->files.at[file].other = true;
    if (strcmp(name, "tally") == 0)
        sscanf(value, "%d %d %d %d %d", &t->tensors, &t->passed, &t->failed, &t->skipped,
               &c->bad_files);
}

/* The checks of a backend from number *from on; after a crash *from is what follows it. */
static enum status check_in_child(struct check *c, const struct backend *b,
                                  const struct child_setup *setup, const char *line, int *from,
                                  struct err *e)
{
    struct check of_child = {.opt = c->opt,
                             .failures = c->failures,
                             .now = "nothing yet",
                             .begun = *from,
                             .files = c->files};
    char *const words = need_text("%s %d %d %s", b->name, c->tally.failed == 0, *from, line);

    fflush(stdout);
    const enum status st = child_ask(setup, &request_check, words, hear, &of_child, e);
    free(words);
    c->tally.tensors += of_child.tally.tensors;
    c->tally.passed += of_child.tally.passed;
    c->tally.failed += of_child.tally.failed;
    c->tally.skipped += of_child.tally.skipped;
    c->bad_files += of_child.bad_files;
    const bool again = st != OK && st != E_INTERRUPTED && of_child.begun > *from;
    *from = again ? of_child.begun : 0;
    if (st == OK || st == E_INTERRUPTED)
        return st;
    clear_childs_line(c);
    say_failure(c, b->name, "backend", of_child.now, of_child.group, e->msg);
    return OK;
}

/* ---- the command -------------------------------------------------------------------------- */

static enum status check_all(struct check *c, struct err *e)
{
    const struct backend *chosen[MAX_LOOKUP];
    const struct variant *known[MAX_LOOKUP];
    struct child_setup setup = {0};
    int n = 0;

    TRY(findings_check(c->opt, e));
    TRY(lookup_variants(known, &n, c->opt, e));
    TRY(lookup_backends(chosen, &n, c->opt, e));
    if (c->opt->golden)
        TRY(golden_files_list(&c->files, c->opt->golden, e));
    enum status st = child_setup_open(&setup, c->opt, e);
    if (st == OK)
        findings_begin(c->opt);
    char *const line = options_command_line(c->opt);
    for (int i = 0; st == OK && i < n; i++) {
        int from = 0;
        /* A large file or shape may take long. */
        setup.patience_s =
            backend_is_outside(chosen[i]->name) ? outside_patience_s(chosen[i]->name) : 0;
        if (c->opt->isolate == ISOLATE_NONE) {
            check_backend(c, chosen[i]);
            continue;
        }
        do
            st = check_in_child(c, chosen[i], &setup, line, &from, e);
        while (st == OK && from > 0);
    }
    child_setup_close(&setup);
    free(line);
    return st;
}

/* The exit code. */
static int summary(const struct check *c)
{
    const struct tally *t = &c->tally;

    const bool rows = findings_are_rows(c->opt);
    FILE *const f = rows ? stderr : stdout;
    int others = 0;

    for (int i = 0; i < c->files.n; i++)
        others += c->files.at[i].other;
    const int files = c->files.n - others;

    findings_end(c->opt, c->failures);
    if (!rows || !c->opt->quiet) {
        fprintf(f, "check: %d file%s, %d tensor%s, %d passed, %d failed, %d skipped", files,
                plural(files), t->tensors, plural(t->tensors), t->passed, t->failed + c->bad_files,
                t->skipped);
        failures_name(f, c->failures);
        fputc('\n', f);
    }
    if (others)
        fprintf(f, "check: %d file%s of other kinds skipped  -> `make golden` reads them\n", others,
                plural(others));
    return t->failed > 0                            ? EXIT_WRONG_NUMBERS
           : c->bad_files > 0 || (others && !files) ? EXIT_BAD_FILE
                                                    : EXIT_FINE;
}

enum status cmd_check(struct options *opt, int *code, struct err *e)
{
    struct failures failures = {0};
    struct check c = {.opt = opt, .failures = &failures};

    if (opt->tokens)
        return check_tokens(opt, code, e);
    const enum status st = check_all(&c, e);
    if (st == OK)
        *code = summary(&c);
    golden_files_free(&c.files);
    failures_free(&failures);
    return st;
}
