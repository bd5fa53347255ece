/* SPDX-License-Identifier: MIT
 *
 * bench check: correctness only. Golden files through every backend, or every operation and every
 * variant on every backend over awkward shapes against the double reference. Each backend runs in a
 * process of its own, so that one that crashes is a line and not the end (--isolate none: in this
 * one). */
#include "commands.h"
#include "harness/check/golden.h"
#include "harness/check/op_cases.h"
#include "harness/measure/result.h"
#include "harness/worker/job.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Shared with the process that does the work, so that a crash loses nothing. */
struct shared {
    struct tally tally;
    int bad_files;
    char now[256]; /* what is being checked */
};

struct check {
    const struct options *opt;
    struct shared *p;
    char **files; /* golden files; NULL = the awkward shapes */
    int n_files;
};

/* ---- golden files ------------------------------------------------------------------------- */

static void print_verdict(void *arg, const struct verdict *v)
{
    const struct check *c = arg;
    const bool failed = !v->skipped && !(v->error <= v->limit);

    if (!failed && c->opt->verbose == 0)
        return;
    if (v->skipped)
        printf("skipped  %-9s %s %s: %s\n", v->backend, v->file, v->tensor, v->skipped);
    else
        printf("%-8s %-9s %s %s: error %.3g, limit %.3g\n", failed ? "FAILED" : "passed",
               v->backend, v->file, v->tensor, v->error, v->limit);
}

static void check_golden(struct check *c, const struct engine *g)
{
    for (int i = 0; i < c->n_files; i++) {
        struct err e;
        snprintf(c->p->now, sizeof(c->p->now), "%s", c->files[i]);
        if (golden_run(g, c->files[i], &c->p->tally, print_verdict, c, &e) != OK) {
            printf("FAILED   %-9s %s\n", g->backend->name, e.msg);
            c->p->bad_files++;
        }
    }
}

/* ---- awkward shapes ----------------------------------------------------------------------- */

/* One query, no memory, more memory than segment, odd head widths, H*dh != D, several sequences,
 * clips at both ends, every gate, every kind of memory. */
static const char *const shapes[] = {
    "--workload attn --seq 1,37 --mem 0,19,64 --batch 1,2 --d-model 48 --heads 3 --d-head 20 "
    "--clip 0,5,64",
    "--workload attn --seq 129,200 --mem 0,300 --d-model 64 --heads 2 --d-head 7",
    "--workload attn --seq 40 --mem 24 --d-model 32 --heads 2 --clamp-len 9",
    "--workload attn --seq 40 --mem 24 --d-model 32 --heads 2 --same-length",
    "--workload layer --seq 1,37 --mem 0,19,64 --batch 1,2 --d-model 48 --heads 3 --d-head 20 "
    "--d-inner 90 --gate gru,input,output,highway,sigtanh,residual",
    "--workload segment,decode --layers 2 --seq 23 --mem 0,41 --batch 1,2 --d-model 48 --heads 3 "
    "--d-inner 96 --mem-kind hidden,kv,recompute,state",
    "--workload attn --phase fwd_bwd --seq 1,37 --mem 0,64 --batch 2 --d-model 48 --heads 3 "
    "--d-head 20 --clip 0,5,64",
    "--workload layer --phase fwd_bwd --seq 1,37 --mem 0,64 --batch 2 --d-model 48 --heads 3 "
    "--d-head 20 --d-inner 90 --gate gru,input,output,highway,sigtanh,residual",
    "--workload train --layers 2 --seq 23 --mem 0,41 --batch 2 --d-model 48 --heads 3 --d-inner 96",
    "--workload attn,layer,decode --seq 1,37 --mem 0,19 --d-model 48 --heads 6 --kv-heads 3",
    "--workload attn,layer --phase fwd,fwd_bwd --seq 37 --mem 0,64 --batch 2 --d-model 48 --heads "
    "3 "
    "--mask window=5,dilation=3;block=7,back=1,global=3,random=2;stride=6,fixed=5,summary=2",
};

/* One run; what its gradients should be, where it has some, is kept for the judge if wanted. */
static enum status run_job(struct job *j, const struct bench_case *c, float **gradients,
                           struct err *e)
{
    enum status st = job_open(j, c, e);

    if (st == OK)
        st = job_place(j, NULL, NULL, e);
    if (st == OK && gradients)
        st = job_expect_gradients(j, gradients, e);
    if (st == OK)
        job_run(j);
    return st;
}

/* The rule of a whole cell for its gradients; extends the text. */
static bool gradients_agree(const struct job *got, const float *want, char *text, size_t size)
{
    const size_t n = strlen(text);
    struct agreement a;

    if (!want)
        return true;
    job_check_gradients(got, want, &a);
    snprintf(text + n, size - n, "; %s: max_rel_err %.2e, nmse %.1e", a.at[0] ? a.at : "gradients",
             a.max_rel, a.nmse);
    return a.max_rel <= job_err_limit(got->bcase) && a.nmse <= 1e-10; /* false for NaN */
}

/* The rule of a whole cell: largest error against largest magnitude, and the mean square. */
static bool agrees(const struct job *got, const struct job *want, char *text, size_t size)
{
    const double limit = job_err_limit(got->bcase);
    double worst = 0, largest = 0, off = 0, all = 0;

    if (got->n_out != want->n_out) {
        snprintf(text, size, "%zu numbers, the reference has %zu", got->n_out, want->n_out);
        return false;
    }
    for (size_t i = 0; i < got->n_out; i++) {
        const double w = (double)want->out[i], d = fabs((double)got->out[i] - w);
        if (d > worst || isnan(d))
            worst = d;
        largest = fmax(largest, fabs(w));
        off += d * d;
        all += w * w;
    }
    snprintf(text, size, "max_rel_err %.2e, limit %.0e, nmse %.1e", worst / largest, limit,
             off / all);
    return worst <= limit * largest && off <= 1e-10 * all; /* false for NaN */
}

static void check_case(struct check *c, const struct bench_case *bcase)
{
    struct bench_case ref = *bcase;
    struct job got = {0}, want = {0};
    char label[160], text[320];
    float *gradients = NULL;
    struct err e;
    struct tally *t = &c->p->tally;

    ref.backend = &backend_ref;
    case_label(bcase, label, sizeof(label));
    snprintf(c->p->now, sizeof(c->p->now), "%s", label);
    enum status st = run_job(&want, &ref, NULL, &e);
    if (st == OK)
        st = run_job(&got, bcase, &gradients, &e);
    const bool good = st == OK && agrees(&got, &want, text, sizeof(text)) &&
                      gradients_agree(&got, gradients, text, sizeof(text));
    t->tensors++;
    t->passed += good;
    t->failed += !good;
    if (!good || c->opt->verbose > 0)
        printf("%-8s %s batch=%d: %s\n", good ? "passed" : "FAILED", label, bcase->batch,
               st == OK ? text : e.msg);
    free(gradients);
    job_close(&got);
    job_close(&want);
}

/* ---- operations --------------------------------------------------------------------------- */

/* Each operation by a few dozen of its cases; the tests run all. */
static void check_operations(struct check *c, const struct engine *g)
{
    enum { CASES = 48 };
    struct tally *t = &c->p->tally;

    for (int op = 0; op_case_name(op); op++) {
        snprintf(c->p->now, sizeof(c->p->now), "operation %s", op_case_name(op));
        const struct op_result r = op_check(g, op, 1 + op_case_count(op) / CASES);
        const bool failed = r.failed > 0, skipped = !failed && r.refused[0];
        t->tensors++;
        t->failed += failed;
        t->skipped += skipped;
        t->passed += !failed && !skipped;
        if (failed)
            printf("FAILED   %-9s %s: %d of %d cases, %s\n", g->backend->name, op_case_name(op),
                   r.failed, r.cases, r.first);
        else if (skipped)
            printf("skipped  %-9s %s: %s\n", g->backend->name, op_case_name(op), r.refused);
        else if (c->opt->verbose > 0)
            printf("passed   %-9s %s: %d cases\n", g->backend->name, op_case_name(op), r.cases);
    }
}

/* ---- awkward shapes of models ------------------------------------------------------------- */

/* Shape `line` with the variants that were chosen. */
static void check_shape(struct check *c, const struct backend *b, int threads, const char *line)
{
    struct options o = {0};
    struct plan plan = {0};
    struct err e;
    enum status st = options_parse_line(&o, line, &e);
    const struct names own_variants = o.variants, own_backends = o.backends;

    if (st == OK) {
        o.variants = c->opt->variants;
        o.backends = (struct names){(const char *[]){b->name}, 1};
        o.default_threads = threads;
        o.seed = c->opt->seed;
        o.impl = c->opt->impl;
        st = plan_make(&plan, &o, &e);
    }
    if (st != E_UNSUPPORTED) { /* else these variants have nothing of this kind */
        if (st != OK)
            printf("FAILED   %s: %s\n", b->name, e.msg);
        c->p->tally.failed += st != OK;
        for (int k = 0; k < plan.n; k++)
            check_case(c, &plan.cases[k]);
    }
    plan_free(&plan);
    o.variants = own_variants; /* what is its own to free */
    o.backends = own_backends;
    options_free(&o);
}

/* ---- one backend -------------------------------------------------------------------------- */

static void check_backend(struct check *c, const struct backend *b)
{
    enum { THREADS = 2 };
    struct engine g;
    struct err e;

    if (engine_open(&g, b->name, THREADS, c->opt->impl, &e) != OK) {
        printf("FAILED   %s: %s\n", b->name, e.msg);
        c->p->tally.failed++;
    } else if (c->files) {
        check_golden(c, &g);
    } else {
        check_operations(c, &g);
        for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
            check_shape(c, b, THREADS, shapes[i]);
    }
    /* In checkasm's spirit: nothing is timed once something failed. */
    if (c->opt->bench && c->p->tally.failed == 0)
        op_bench(b);
    fflush(stdout);
}

static void check_apart(struct check *c, const struct backend *b)
{
    int how = 0;

    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        check_backend(c, b);
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, &how, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0 || !WIFEXITED(how) || WEXITSTATUS(how) != 0) {
        printf("FAILED   %-9s %s: %s\n", b->name, c->p->now,
               pid < 0            ? "no process"
               : WIFSIGNALED(how) ? sigdescr_np(WTERMSIG(how))
                                  : "its process ended early");
        c->p->tally.failed++;
    }
}

/* ---- the command -------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum status list_files(struct check *c, struct err *e)
{
    static const char ending[] = ".safetensors";
    const char *path = c->opt->golden;
    struct stat s;

    if (stat(path, &s) != 0)
        return fail(e, E_IO, "cannot read %s: %s  -> a golden file or a folder of them", path,
                    strerror(errno));
    c->files = calloc(4096, sizeof(*c->files));
    CHECK(c->files);
    if (!S_ISDIR(s.st_mode)) {
        c->files[c->n_files++] = strdup(path);
        return OK;
    }
    DIR *dir = opendir(path);
    if (!dir)
        return fail(e, E_IO, "cannot read %s: %s", path, strerror(errno));
    for (const struct dirent *d; (d = readdir(dir)) && c->n_files < 4096;) {
        const size_t n = strlen(d->d_name);
        if (n > strlen(ending) && strcmp(d->d_name + n - strlen(ending), ending) == 0)
            CHECK(asprintf(&c->files[c->n_files++], "%s/%s", path, d->d_name) > 0);
    }
    closedir(dir);
    qsort(c->files, (size_t)c->n_files, sizeof(*c->files), by_name);
    if (c->n_files == 0)
        return fail(e, E_IO, "%s has no *%s files  -> a folder of golden files", path, ending);
    return OK;
}

static int summary(const struct check *c)
{
    const struct tally *t = &c->p->tally;

    printf("check: %d files, %d tensors, %d passed, %d failed, %d skipped\n", c->n_files,
           t->tensors, t->passed, t->failed, t->skipped);
    return t->failed > 0 ? EXIT_WRONG_NUMBERS : c->p->bad_files > 0 ? EXIT_BAD_FILE : EXIT_FINE;
}

int cmd_check(struct options *opt)
{
    struct check c = {.opt = opt};
    const struct backend *chosen[CHOICE_MAX];
    struct err e;
    int n = 0, code = EXIT_FINE;
    enum status st = lookup_backends(chosen, &n, opt, &e);

    c.p = mmap(NULL, sizeof(*c.p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(c.p != MAP_FAILED);
    if (st == OK && opt->golden)
        st = list_files(&c, &e);
    for (int i = 0; st == OK && i < n; i++) {
        if (opt->isolate == ISOLATE_NONE)
            check_backend(&c, chosen[i]);
        else
            check_apart(&c, chosen[i]);
    }
    code = st == OK ? summary(&c) : report_error(st, &e);
    for (int i = 0; i < c.n_files; i++)
        free(c.files[i]);
    free(c.files);
    munmap(c.p, sizeof(*c.p));
    return code;
}
