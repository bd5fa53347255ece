/* SPDX-License-Identifier: MIT
 *
 * bench gate: two programs measured in turns, and an exit code for CI jobs. Each case is first
 * compared with itself (A/A), which gives the threshold; then old with new. Slower and faster cases
 * are measured again at the end, with fresh processes, and count only if the result repeats. */
#include "harness/compare/gate.h"

#include "commands.h"
#include "harness/cli/option_words.h"
#include "harness/compare/callgrind.h"
#include "harness/compare/compare_print.h"
#include "harness/learn/score/score_child.h"
#include "harness/worker/reference.h"

#include <fcntl.h>

/* ---- times -------------------------------------------------------------------------------- */

enum { FIRST_AA, SECOND_AA, FIRST_ROUND, SECOND_ROUND }; /* salts of the runs of a case */

/* One run of a case: `after` against `before`. An error of the case is in d->status. */
static enum status measure_pair(struct trial *g, const struct gate_case *k, struct change *out,
                                int before, int after, int reference, uint64_t salt,
                                struct ab_pairs *d, struct err *e)
{
    const enum status st = ab_pairs_run(d, &g->ab_run, k->bcase, &g->ab_run.program[before],
                                        &g->ab_run.program[after], reference, k->pairs, salt, e);

    if (st == OK && d->status == ROW_OK) {
        double *work = need_room((size_t)d->n * PAIRS_WORK + 1, sizeof(*work));
        /* a command line may have threads */
        *out = change_of_pairs(d->pair, d->n, k->bcase ? k->bcase->threads : 2, k->threshold, work);
        free(work);
    }
    ab_pairs_free(d);
    return st;
}

/* A/A, repeated with twice the pairs if the machine is noisy; sets the threshold. */
static enum status measure_identical(struct trial *g, struct gate_case *k, int reference,
                                     struct ab_pairs *d, struct err *e)
{
    const int again = *g->ab_run.program[AGAIN].path ? AGAIN : BEFORE;

    k->pairs = g->ab_run.session.opt->min_samples;
    k->threshold = g->threshold;
    TRY(measure_pair(g, k, &k->identical, BEFORE, again, reference, FIRST_AA, d, e));
    if (d->status == ROW_OK && gate_too_noisy(&k->identical, g->threshold)) {
        k->pairs *= 2;
        TRY(measure_pair(g, k, &k->identical, BEFORE, again, reference, SECOND_AA, d, e));
    }
    if (d->status == ROW_OK)
        k->threshold = gate_threshold(&k->identical, g->threshold);
    return OK;
}

static enum status open_reference(const struct trial *g, const struct gate_case *k, int *reference,
                                  struct ab_pairs *d, struct err *e)
{
    struct err why;

    if (!k->bcase || reference_make(reference, k->bcase, &g->ab_run.session.setup, 0, &why) == OK)
        return OK;
    if (*g->ab_run.session.setup.stop)
        return fail(e, E_INTERRUPTED, "interrupted");
    d->status = ROW_FAILED;
    text_put(d->detail, sizeof(d->detail), why.msg);
    return OK;
}

static enum status first_round(struct trial *g, struct gate_case *k, struct comparison *c,
                               struct err *e)
{
    struct ab_pairs d = {.arena_bytes = {NAN, NAN}};
    int reference = -1;
    enum status st = open_reference(g, k, &reference, &d, e);

    if (st == OK && d.status == ROW_OK)
        st = measure_identical(g, k, reference, &d, e);
    if (st == OK && d.status == ROW_OK)
        st = measure_pair(g, k, &k->first, BEFORE, AFTER, reference, FIRST_ROUND, &d, e);
    if (reference >= 0)
        close(reference);
    TRY(st);
    ab_run_account(&g->ab_run, c, &d);
    c->threshold = k->threshold;
    c->before_pct = 100 * change_noise(&k->identical);
    if (d.status == ROW_OK)
        c->change = k->first;
    return OK;
}

static enum status second_round(struct trial *g, struct gate_case *k, struct err *e)
{
    struct ab_pairs d = {.status = ROW_OK};
    int reference = -1;
    enum status st = open_reference(g, k, &reference, &d, e);

    if (st == OK && d.status == ROW_OK)
        st = measure_pair(g, k, &k->second, BEFORE, AFTER, reference, SECOND_ROUND, &d, e);
    if (reference >= 0)
        close(reference);
    k->repeated = st == OK && d.status == ROW_OK;
    return st;
}

/* ---- exact numbers ------------------------------------------------------------------------ */

static enum status count_case(struct trial *g, const struct bench_case *bcase, struct comparison *c,
                              struct err *e)
{
    char text[160];

    if (!callgrind_applies(bcase))
        return OK;
    for (int s = 0; s < SIDES; s++) {
        struct err why;
        const enum status st = callgrind_count(
            &c->instructions[s], bcase, g->ab_run.program[s].path, &g->ab_run.session.setup, &why);
        if (*g->ab_run.session.setup.stop)
            return fail(e, E_INTERRUPTED, "interrupted");
        if (st != OK) {
            snprintf(text, sizeof(text), "instructions of %s not counted: %.100s",
                     g->ab_run.program[s].name, why.msg);
            text_join(c->note, sizeof(c->note), "; ", text);
            session_warn(&g->ab_run.session, text);
            return OK;
        }
    }
    if (gate_more_instructions(c->instructions[BEFORE], c->instructions[AFTER])) {
        snprintf(text, sizeof(text), "instructions %+.2f %%",
                 100 * (c->instructions[AFTER] / c->instructions[BEFORE] - 1));
        text_join(c->note, sizeof(c->note), "; ", text);
        c->changed = true;
    }
    return OK;
}

/* Append an entry to both lists. */
static struct comparison *add_case(struct trial *g, const struct bench_case *bcase)
{
    struct comparison *const c = ab_run_comparison(&g->ab_run, &g->all, bcase, g->threshold);

    GROW_SMALL(g->cases, g->all.n - 1);
    g->cases[g->all.n - 1] = (struct gate_case){.bcase = bcase};
    return c;
}

/* The child's request. */
static char *scoring(const struct options *o, int seq, int mem, const char *backend)
{
    struct bytes line;
    FILE *const f = bytes_begin(&line);
    char past[MEM_TEXT];

    word_print_option(f, "ckpt", o->ckpt, '"');
    word_print_option(f, "corpus", o->corpus, '"');
    mem_text(past, mem);
    fprintf(f, " --bytes %d", o->bytes);
    word_print_option(f, "backend", backend, '\0');
    fprintf(f, " --seq %d --mem %s --threads %d", seq, past,
            o->threads.n ? o->threads.v[0] : o->default_threads);
    return bytes_end(f, &line);
}

/* One text under one checkpoint by both programs. */
static enum status score(struct trial *g, int seq, int mem, const char *backend, struct err *e)
{
    const struct options *o = g->ab_run.session.opt;
    struct comparison *c = add_case(g, NULL);
    char *const line = scoring(o, seq, mem, backend);
    char past[MEM_TEXT];
    enum status st = OK;

    c->exact = true;
    mem_text(past, mem);
    snprintf(c->label, sizeof(c->label), "perplexity seq=%d mem=%s %s", seq, past, backend);
    for (int s = 0; s < SIDES && st == OK; s++) {
        const char *const words[] = {g->ab_run.program[s].path, NULL};
        struct child_setup setup = g->ab_run.session.setup;
        struct report report;
        struct err why;
        setup.launch = words;
        st = score_in_child(&report, line, &setup, NULL, &why);
        c->nll[s] = st == OK ? report.nll : NAN;
        if (st == OK || *setup.stop)
            continue;
        g->ab_run.wrong += st == E_WRONG;
        g->ab_run.failed += st != E_WRONG;
        snprintf(c->note, sizeof(c->note), "%s %.900s", g->ab_run.program[s].name, why.msg);
        session_warn(&g->ab_run.session, c->note);
    }
    free(line);
    if (*g->ab_run.session.setup.stop)
        return fail(e, E_INTERRUPTED, "interrupted");
    if (st == OK)
        comparison_exact(c);
    return OK;
}

static enum status score_all(struct trial *g, struct err *e)
{
    const struct options *o = g->ab_run.session.opt;
    const struct backend *chosen[MAX_LOOKUP];
    int n = 0;

    if (!o->ckpt)
        return OK;
    TRY(lookup_backends(chosen, &n, o, e));
    const struct backend *b =
        options_given(o, "backend") && n > 0 ? chosen[0] : lookup_fastest(backends, ELEM_F32);
    for (int i = 0; i < o->seq.n; i++)
        for (int k = 0; k < o->mem.n; k++)
            TRY(score(g, o->seq.v[i], o->mem.v[k], b->name, e));
    return OK;
}

/* ---- the gate ----------------------------------------------------------------------------- */

static void tell(struct trial *g, int i, int n, const struct comparison *c, const char *when)
{
    if (!g->ab_run.session.opt->quiet)
        console_note(&g->ab_run.session.console, "[%d/%d] %s  %s%s  (threshold %.1f %%)", i + 1, n,
                     c->label, verdict_name[c->change.verdict], when, 100 * c->threshold);
}

static enum status confirm(struct trial *g, struct err *e)
{
    const int n = g->all.n;

    if (*g->ab_run.program[AGAIN].path)
        gate_layout(g);
    for (int i = 0; i < n; i++) {
        struct gate_case *k = &g->cases[i];
        struct comparison *c = &g->all.v[i];
        char why[160];
        if (c->change.n == 0)
            continue;
        ab_run_at(&g->ab_run, i, n, c->label);
        if (gate_flagged(k))
            TRY(second_round(g, k, e));
        c->change.verdict = gate_verdict(k, why, sizeof(why));
        text_join(c->note, sizeof(c->note), "; ", why);
        if (gate_flagged(k))
            tell(g, i, n, c, " in the second round");
    }
    return OK;
}

static enum status run(struct trial *g, struct err *e)
{
    const bool plain = g->ab_run.session.opt->plain;
    const int n = plain ? 1 : g->ab_run.plan.n;
    enum status st = OK;

    for (int i = 0; i < n && st == OK; i++) {
        const struct bench_case *bcase = plain ? NULL : &g->ab_run.plan.cases[i];
        struct comparison *c = add_case(g, bcase);
        ab_run_at(&g->ab_run, i, n, c->label);
        st = *g->ab_run.session.setup.stop ? fail(e, E_INTERRUPTED, "interrupted")
                                           : first_round(g, &g->cases[i], c, e);
        if (st == OK && g->ab_run.session.opt->instructions && c->change.n > 0)
            st = count_case(g, bcase, c, e);
        if (st != OK) {
            g->all.n--; /* no partial results */
            break;
        }
        comparison_exact(c);
        tell(g, i, n, c, "");
    }
    if (st == OK)
        st = confirm(g, e);
    progress_end(&g->ab_run.session.console.wait);
    return st == OK ? score_all(g, e) : st;
}

/* Precedence: interruption, files, wrong, slower, failed, not trustworthy. */
static int exit_code(const struct trial *g, enum status st)
{
    const int code = ab_run_exit_code(&g->ab_run, st);
    bool changed = false;

    for (int i = 0; i < g->all.n; i++)
        changed = changed || g->all.v[i].changed;
    if (st != OK || code == EXIT_WRONG_NUMBERS)
        return code;
    if (comparisons_count(&g->all, VERDICT_SLOWER) > 0 || changed)
        return EXIT_REGRESSION;
    if (code != EXIT_FINE)
        return code;
    if (g->all.n == g->ab_run.skipped)
        return EXIT_NOTHING_TO_DO;
    const int warnings = comparisons_count(&g->all, VERDICT_UNCLEAR) + g->ab_run.session.warnings;
    return warnings > 0 && g->ab_run.session.opt->strict ? EXIT_NOT_TRUSTWORTHY : EXIT_FINE;
}

/* Appended, never overwritten: CI systems provide a file that several steps write to. */
static enum status write_summary(const struct trial *g, int code, struct err *e)
{
    const char *path = g->ab_run.session.opt->summary;

    if (!path)
        return OK;
    /* never waits for the reader of a pipe */
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    FILE *const f = fd < 0 ? NULL : fdopen(fd, "a");
    if (!f)
        return file_fail(e, "write", path, errno);
    gate_markdown(f, g, code);
    enum status st = file_flush(f, path, e);
    if (fclose(f) != 0 && st == OK)
        st = file_fail(e, "write", path, errno);
    return st;
}

static enum status check(const struct options *o, struct err *e)
{
    static const char *const plain[] = {"min-samples", "block-ms", "warmup-ms", "seed", NULL};

    if (o->words.n > 0 || o->exec.n == 0)
        return fail(e, E_USAGE,
                    "gate measures two programs, never stored times  -> bench gate "
                    "--exec old=PATH --exec new=PATH");
    if ((o->ckpt != NULL) != (o->corpus != NULL))
        return fail(e, E_USAGE,
                    "%s alone: a score needs a checkpoint and a text  -> give --ckpt FILE and "
                    "--corpus FILE",
                    o->ckpt ? "--ckpt" : "--corpus");
    if (o->plain && o->instructions)
        return fail(e, E_USAGE, "--instructions does not apply to --plain  -> leave it out");
    if (o->plain)
        return options_refuse(o, "--plain", plain, e);
    return o->instructions ? count_ready(e) : OK;
}

enum status cmd_gate(struct options *opt, int *code, struct err *e)
{
    struct err io;

    TRY(check(opt, e));
    struct trial *const g = need_room(1, sizeof(*g));
    g->threshold = opt->threshold_pct / 100;
    enum status st = ab_run_open(&g->ab_run, opt, 1, e);
    if (st == OK)
        st = ab_run_estimate(&g->ab_run, 2, e); /* A/A and A/B */
    if (st == OK && (opt->plain || g->ab_run.plan.n > 0))
        st = run(g, e);
    if (st != OK && st != E_INTERRUPTED) /* above what is printed of the cases before */
        report_error(st, e);
    *code = exit_code(g, st);
    enum status written = OK;
    const enum format format = (enum format)opt->format;
    const bool people = format_is_table(format, stdout) || format_is_pasted(format);
    if (g->all.n > 0) {
        written = comparisons_print(stdout, &g->all, format, &opt->columns, &io);
        if (written == OK)
            written = write_summary(g, *code, &io);
        if (!opt->quiet)
            comparisons_print_means(people ? stdout : stderr, format, &g->all);
        gate_say(stderr, g);
    } else if (st == OK) {
        fprintf(stderr, "bench: no cases to measure  -> see: bench list cases\n");
    }
    if (written != OK && st != E_INTERRUPTED)
        *code = report_error(written, &io);
    ab_run_close(&g->ab_run);
    comparisons_free(&g->all);
    free(g->cases);
    free(g);
    return OK;
}
