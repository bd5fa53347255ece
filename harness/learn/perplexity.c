/* SPDX-License-Identifier: MIT
 *
 * Perplexity rows, for bench eval and for sweeps. */
#include "perplexity.h"

#include "harness/cli/option_words.h"
#include "harness/measure/console_rows.h"
#include "harness/util/units.h"
#include "score.h"
#include "score_child.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

/* One checkpoint on one text. */
struct subject {
    const struct options *opt; /* lengths, how the past is reached, bytes, and what lines repeat */
    const char *ckpt, *corpus;
    struct config config;
    char ckpt_xxh3[17], corpus_xxh3[17], unit[32];
    char made_of[256]; /* the generated source that it was trained on, or "" */
    int64_t step;      /* I64_EMPTY = unknown */
    size_t tokens;
    const struct backend *backend;
    int threads;
};

/* ---- what is scored ----------------------------------------------------------------------- */

/* One backend: the fastest of those named, or of all. */
static enum status choose_one(struct subject *t, const struct options *o, struct err *e)
{
    const struct backend *chosen[MAX_LOOKUP + 1] = {0};
    int n = 0;
    const enum status st = lookup_backends(chosen, &n, o, e);

    if (st != OK)
        return st;
    t->backend = lookup_fastest(options_given(o, "backend") ? chosen : backends);
    t->threads = o->threads.n > 0 ? o->threads.v[0] : o->default_threads;
    return OK;
}

static enum status examine_checkpoint(struct subject *t, struct err *e)
{
    struct safetensors file;
    enum status st = safetensors_open(&file, t->ckpt, e);

    if (st != OK)
        return st;
    const char *unit = safetensors_meta(&file, "unit"), *text = safetensors_meta(&file, "corpus");
    int step = -1;
    st = checkpoint_lm(&file, &t->config, e);
    if (st == OK)
        st = safetensors_int(&file, "step", -1, -1, INT32_MAX, &step, e);
    t->step = step < 0 ? I64_EMPTY : step;
    snprintf(t->unit, sizeof(t->unit), "%s", unit ? unit : "byte");
    snprintf(t->made_of, sizeof(t->made_of), "%s", text && synthetic_named(text) ? text : "");
    snprintf(t->ckpt_xxh3, sizeof(t->ckpt_xxh3), "%016llx",
             (unsigned long long)XXH3_64bits(file.map, file.size));
    safetensors_close(&file);
    return st;
}

/* The line that repeats the row; after the command's name it is the child's request. */
static const char EVAL[] = "eval ";

static char *line_of(const struct subject *t, const struct options *opt, int seq, int mem,
                     enum mem_kind kind)
{
    char *const rest = options_repro(opt);
    struct bytes line;
    FILE *const f = bytes_open(&line, NULL);
    char past[MEM_TEXT];

    NEED(f);
    fputs(EVAL, f);
    word_print_option(f, "ckpt", t->ckpt, '"');
    fputc(' ', f);
    word_print_option(f, "corpus", t->corpus, '"');
    mem_text(past, mem);
    fprintf(f, " --bytes %d --backend %s --seq %d --mem %s --mem-kind %s --threads %d%s",
            opt->bytes, t->backend->name, seq, past, mem_kind_name[kind], t->threads, rest);
    NEED(bytes_close(f, &line, NULL) == OK);
    free(rest);
    return line.data;
}

/* A row has room for the line. */
static enum status check_line(const struct subject *t, const struct options *opt, struct err *e)
{
    char *const longest = line_of(t, opt, INT_MAX, INT_MAX, MEM_RECOMPUTE);
    const size_t n = strlen(longest);

    free(longest);
    return n < LINE_SIZE
               ? OK
               : fail(e, E_USAGE,
                      "the names of checkpoint and text make a line of %zu bytes, of %d at most  "
                      "-> give shorter paths",
                      n, LINE_SIZE - 1);
}

/* t->backend is chosen already. */
static enum status examine(struct subject *t, const struct options *opt, struct err *e)
{
    struct corpus corpus;
    enum status st = examine_checkpoint(t, e);

    if (st == OK && !t->corpus && !t->made_of[0])
        st = fail(e, E_USAGE, "checkpoint %s needs a text to score  -> add --corpus FILE", t->ckpt);
    if (!t->corpus) /* a model trained on a generated source names its text */
        t->corpus = t->made_of;
    if (st == OK)
        st = corpus_open(&corpus, t->corpus, SPLIT_TEST, (size_t)opt->bytes, e);
    if (st != OK)
        return st;
    snprintf(t->corpus_xxh3, sizeof(t->corpus_xxh3), "%s", corpus.xxh3);
    t->tokens = corpus.n;
    corpus_close(&corpus);
    return check_line(t, opt, e);
}

/* ---- one row ------------------------------------------------------------------------------ */

#define PUT(column, text) text_put(row.column, sizeof(row.column), (text))

static void put_path(char column[LINE_SIZE], const char *path)
{
    char *const exact = text_exact(path);

    text_put(column, LINE_SIZE, exact);
    free(exact);
}

static struct perplexity_row make_row(const struct subject *t, const struct session *s,
                                      const struct result *r)
{
    const struct report *p = &r->report;
    struct perplexity_row row = perplexity_row_empty();
    struct key_row key;

    result_key(&key, r, s->dir.run_id, s->facts.host_id);
    row_set_key(&tables[TABLE_PERPLEXITY], &row, &key);
    put_path(row.checkpoint, t->ckpt);
    PUT(checkpoint_xxh3, t->ckpt_xxh3);
    row.train_step = t->step;
    put_path(row.corpus, t->corpus);
    PUT(corpus_xxh3, t->corpus_xxh3);
    PUT(unit, t->unit);
    if (r->status != ROW_OK)
        return row;
    row.tokens_scored = (int64_t)p->tokens_scored;
    row.segments = (int64_t)p->segments;
    row.nll_nats_per_token = p->nll;
    row.ppl = exp(p->nll);
    row.bits_per_unit = p->nll / log(2);
    row.ppl_ci95_low = exp(p->nll_low);
    row.ppl_ci95_high = exp(p->nll_high);
    row.ppl_floor = exp(p->nll_floor);
    row.answers_scored = (int64_t)p->answers;
    row.answer_nll_nats = p->answer_nll;
    row.answer_floor_nats = p->answer_floor;
    row.eval_ns = p->eval_ns;
    row.tokens_per_s = p->tokens_scored / p->eval_ns * 1e9;
#define X(n) row.nll_at_##n = p->nll_at_##n;
    NLL_PLACES(X)
#undef X
    return row;
}

/* The screen's columns, which Markdown has too. Bits per unit come first: they do not depend on
 * what a token is. The floor is that of the text's true source, where it is known; answers, and
 * their own, stand beside it where the source has some. */
enum { SEQ, MEM, BITS, INTERVAL, FLOOR, ANSWERS, LEAST, PPL, SCORED, SPEED, SCREEN_COLUMNS };

void perplexity_print(FILE *f, const struct perplexity_row *row, bool first, bool md)
{
    static const int least[SCREEN_COLUMNS] = {5, 6, 9, 17, 6, 7, 6, 8, 8, 8};
    const bool ok = strcmp(row->status, "ok") == 0;
    struct text_table_column column[SCREEN_COLUMNS];
    char bits[48], ppl[48], speed[48], text[SCREEN_COLUMNS][64] = {{0}};
    const char *name[SCREEN_COLUMNS] = {"seq",     "mem",   bits, "95 % interval", "floor",
                                        "answers", "floor", ppl,  "scored",        speed};
    const char *cell[SCREEN_COLUMNS];
    int width[SCREEN_COLUMNS];

    snprintf(bits, sizeof(bits), "bits/%.20s", row->unit);
    snprintf(ppl, sizeof(ppl), "ppl/%.20s", row->unit);
    snprintf(speed, sizeof(speed), "%.20ss/s", row->unit);
    snprintf(text[SEQ], 64, "%d", (int)row->seq_tokens);
    mem_text(text[MEM], row->mem_tokens);
    if (ok) {
        snprintf(text[BITS], 64, "%.4f", row->bits_per_unit);
        snprintf(text[INTERVAL], 64, "[%.4f %.4f]", log2(row->ppl_ci95_low),
                 log2(row->ppl_ci95_high));
        snprintf(text[FLOOR], 64, isfinite(row->ppl_floor) ? "%.4f" : "-", log2(row->ppl_floor));
        snprintf(text[ANSWERS], 64, isfinite(row->answer_nll_nats) ? "%.4f" : "-",
                 row->answer_nll_nats / log(2));
        snprintf(text[LEAST], 64, isfinite(row->answer_floor_nats) ? "%.4f" : "-",
                 row->answer_floor_nats / log(2));
        snprintf(text[PPL], 64, "%.4f", row->ppl);
        snprintf(text[SCORED], 64, "%s", units_count((double)row->tokens_scored).s);
        snprintf(text[SPEED], 64, "%s", units_rate(row->tokens_per_s).s);
    }
    int n = 0;
    for (int k = 0; k < SCREEN_COLUMNS; k++) {
        if ((k == ANSWERS || k == LEAST) && !synthetic_asks(row->corpus))
            continue;
        width[n] = (n > 0) + max_int(least[k], (int)strlen(name[k]));
        column[n] = (struct text_table_column){.name = name[k], .number = true};
        cell[n++] = text[k];
    }
    if (!ok)
        cell[INTERVAL] = row->status_detail;
    if (first) {
        fprintf(f, md ? "**%s  %s  %s**\n\n" : "%s  %s  %s\n", row->variant, row->backend,
                row->checkpoint);
        for (int k = 0; k < n && !md; k++)
            fprintf(f, "%*s%s", width[k], column[k].name, k + 1 < n ? "" : "\n");
        if (md)
            text_row_print(f, FORMAT_MD, column, NULL, n);
    }
    if (md)
        text_row_print(f, FORMAT_MD, column, cell, n);
    else if (!ok)
        fprintf(f, "%*s%*s  %s: %s\n", width[SEQ], text[SEQ], width[MEM], text[MEM], row->status,
                row->status_detail);
    else
        for (int k = 0; k < n; k++)
            fprintf(f, "%*s%s", width[k], cell[k], k + 1 < n ? "" : "\n");
}

static void print_row(struct session *s, const struct perplexity_row *row)
{
    const bool first = !s->console.started, chosen = s->console.opt->columns.n > 0;
    const enum format format = s->console.format;
    const struct table *t = &tables[TABLE_PERPLEXITY];
    const struct selection *columns = &s->console.columns;

    if ((format == FORMAT_TABLE || format == FORMAT_MD) && !chosen) {
        perplexity_print(stdout, row, first, format == FORMAT_MD);
    } else if (format == FORMAT_TABLE) {
        char line[LINE_SIZE];
        if (first) {
            chosen_line(line, t, columns, NULL);
            puts(line);
        }
        chosen_line(line, t, columns, row);
        puts(line);
    } else if (format != FORMAT_JSON) { /* one document, at the end */
        if (first)
            row_print_names(stdout, format, t, columns);
        row_print(stdout, format, t, columns, row);
    }
    s->console.started = true;
    console_flush(&s->console);
}

/* A case that holds the key columns of the evaluation. */
static struct bench_case scored_case(const struct subject *t, int seq, int mem, enum mem_kind kind)
{
    struct bench_case bcase = {
        .variant = t->config.variant,
        .backend = t->backend,
        .workload = WORK_SEGMENT,
        .mem_kind = kind,
        .seq = seq,
        .mem = mem,
        .batch = 1,
        .layers = t->config.steps ? t->config.steps : t->config.N,
        .config = t->config,
        .threads = t->threads,
        .opt = t->opt,
    };

    bcase.config.mem_len = max_int(0, mem);
    bcase.repro = line_of(t, t->opt, seq, mem, kind);
    snprintf(bcase.case_id, sizeof(bcase.case_id), "%016llx",
             (unsigned long long)XXH3_64bits(bcase.repro, strlen(bcase.repro)));
    return bcase;
}

static enum status score_one(struct session *s, const struct subject *t, int seq, int mem,
                             bool print, struct err *e)
{
    struct err why;
    enum mem_kind kind;
    enum status st = score_mem_kind(&kind, &t->config, t->opt, mem, e);

    if (st != OK)
        return st;
    struct bench_case bcase = scored_case(t, seq, mem, kind);
    struct result r = {.bcase = &bcase};
    if (rundir_done(&s->dir, TABLE_PERPLEXITY, bcase.case_id))
        goto out;
    utc_text(r.started_at_utc, time(NULL));
    char past[MEM_TEXT];
    mem_text(past, mem);
    progress_begin(&s->console.wait, 0, "scoring %s seq=%d mem=%s", t->config.variant->name, seq,
                   past);
    const enum status scored =
        score_in_child(&r.report, bcase.repro + strlen(EVAL), &s->setup, &s->console.wait, &why);
    progress_end(&s->console.wait);
    if (scored != OK && *s->setup.stop) {
        st = fail(e, E_INTERRUPTED, "interrupted");
        goto out;
    }
    s->bad_file = s->bad_file || scored == E_IO;
    if (scored != OK) {
        r.status = scored == E_WRONG ? ROW_WRONG : scored == E_TIMEOUT ? ROW_TIMEOUT : ROW_FAILED;
        text_put(r.detail, sizeof(r.detail), why.msg);
    }
    const struct perplexity_row row = make_row(t, s, &r);
    st = rundir_write(&s->dir, TABLE_PERPLEXITY, &row, e);
    s->rows[r.status]++;
    if (scored != OK)
        console_note(&s->console, "bench: %s", why.msg);
    if (print)
        print_row(s, &row);
out:
    free(bcase.repro);
    return st;
}

static bool has_past(const struct subject *t, int mem)
{
    return mem != MEM_ALL || mem_can(config_mem(&t->config), MEM_STATE);
}

static enum status score_all(struct session *s, const struct subject *t, bool print, struct err *e)
{
    const struct options *o = t->opt;
    enum status st = OK;

    for (int i = 0; i < o->seq.n && st == OK; i++)
        for (int k = 0; k < o->mem.n && st == OK; k++) {
            const int mem = o->mem.v[k];
            if (!print && !has_past(t, mem)) /* of a sweep, which says so where it measures */
                continue;
            st = *s->setup.stop ? fail(e, E_INTERRUPTED, "interrupted")
                                : score_one(s, t, o->seq.v[i], mem, print, e);
        }
    return st;
}

/* ---- sweep -------------------------------------------------------------------------------- */

static bool scores_nothing(const struct options *o)
{
    return o->ckpt && strcmp(o->ckpt, "none") == 0;
}

/* The weights of a variant: the given file, if it is of this variant, else the shipped one if there
 * is a text for it. Errors of an unreadable file are reported later. */
static bool weights_of(const struct variant *v, const struct options *o, char path[FILE_PATH])
{
    struct subject t = {.ckpt = path};
    struct err ignored;
    char name[128];

    if (o->ckpt) {
        snprintf(path, FILE_PATH, "%s", o->ckpt);
        return examine_checkpoint(&t, &ignored) != OK || t.config.variant == v;
    }
    snprintf(name, sizeof(name), "results/models/%s.safetensors", v->name);
    return options_locate(path, FILE_PATH, name) &&
           (o->corpus || examine_checkpoint(&t, &ignored) != OK || t.made_of[0]);
}

/* Is there a case whose context is a past, as that of a scored text is? */
static bool is_planned(const struct plan *plan, const struct variant *v)
{
    bool planned = false;

    for (int i = 0; i < plan->n; i++)
        planned = planned || (plan->cases[i].variant == v && plan->cases[i].workload != WORK_CROSS);
    return planned;
}

enum status sweep_perplexity_check(const struct options *o, const struct plan *plan, struct err *e)
{
    struct subject t = {.opt = o, .ckpt = o->ckpt, .corpus = o->corpus};

    if (!o->ckpt || scores_nothing(o))
        return OK;
    enum status st = choose_one(&t, o, e);
    if (st == OK)
        st = examine(&t, o, e);
    if (st != OK)
        return st;
    if (is_planned(plan, t.config.variant))
        return OK;
    return fail(e, E_USAGE,
                "checkpoint %s is of variant %s, which this sweep leaves out  -> "
                "--variant %s",
                o->ckpt, t.config.variant->name, t.config.variant->name);
}

/* Call `visit` for every variant of the plan that has weights and a text. */
typedef enum status visit_fn(struct session *s, const struct subject *t, void *arg, struct err *e);
static enum status visit_weights(struct session *s, const struct plan *plan, visit_fn *visit,
                                 void *arg, struct err *e)
{
    enum status st = OK;

    for (int v = 0; variants[v] && st == OK && !scores_nothing(s->opt); v++) {
        char path[FILE_PATH];
        if (!is_planned(plan, variants[v]) || !weights_of(variants[v], s->opt, path))
            continue;
        struct subject t = {.opt = s->opt, .ckpt = path, .corpus = s->opt->corpus};
        st = choose_one(&t, s->opt, e);
        if (st == OK)
            st = examine(&t, s->opt, e);
        if (st == OK)
            st = visit(s, &t, arg, e);
    }
    return st;
}

static enum status score_visited(struct session *s, const struct subject *t, void *arg,
                                 struct err *e)
{
    (void)arg;
    return score_all(s, t, false, e);
}

enum status sweep_perplexity(struct session *s, const struct plan *plan, struct err *e)
{
    return visit_weights(s, plan, score_visited, NULL, e);
}

/* ---- how long it takes -------------------------------------------------------------------- */

struct sum_of_times {
    const struct speeds *speeds;
    double s;
};

static enum status add_time(struct session *s, const struct subject *t, void *arg, struct err *e)
{
    struct sum_of_times *sum = arg;
    const struct options *o = s->opt;
    enum mem_kind kind;
    enum status st = OK;

    for (int i = 0; i < o->seq.n && st == OK; i++)
        for (int k = 0; k < o->mem.n && st == OK; k++) {
            if (!has_past(t, o->mem.v[k]))
                continue;
            st = score_mem_kind(&kind, &t->config, o, o->mem.v[k], e);
            if (st != OK)
                return st;
            struct bench_case c = scored_case(t, o->seq.v[i], o->mem.v[k], kind);
            if (!rundir_done(&s->dir, TABLE_PERPLEXITY, c.case_id))
                sum->s += sum->speeds->start_s +
                          (double)t->tokens / o->seq.v[i] * estimate_call_s(&c, sum->speeds);
            free(c.repro);
        }
    return st;
}

double sweep_perplexity_s(struct session *s, const struct plan *plan, const struct speeds *speeds)
{
    struct sum_of_times sum = {.speeds = speeds};

    return visit_weights(s, plan, add_time, &sum, &(struct err){""}) == OK ? sum.s : 0;
}

/* ---- study -------------------------------------------------------------------------------- */

enum status perplexity_rows(struct session *s, const struct options *o, char first[17],
                            struct err *e)
{
    struct subject t = {.opt = o, .ckpt = o->ckpt, .corpus = o->corpus};
    enum mem_kind kind;
    enum status st = choose_one(&t, o, e);

    *first = '\0';
    if (st == OK)
        st = examine(&t, o, e);
    if (st == OK)
        st = score_mem_kind(&kind, &t.config, o, o->mem.v[0], e);
    if (st != OK)
        return st;
    struct bench_case c = scored_case(&t, o->seq.v[0], o->mem.v[0], kind);
    snprintf(first, sizeof(c.case_id), "%s", c.case_id);
    free(c.repro);
    return score_all(s, &t, false, e);
}

/* ---- eval --------------------------------------------------------------------------------- */

static enum status can_score(const struct subject *t, const struct options *o, struct err *e)
{
    enum mem_kind kind;
    enum status st = OK;

    for (int k = 0; k < o->mem.n && st == OK; k++)
        st = score_mem_kind(&kind, &t->config, o, o->mem.v[k], e);
    return st;
}

enum status perplexity_eval(struct session *s, struct err *e)
{
    const struct options *o = s->opt;
    struct subject t = {.opt = o, .ckpt = o->ckpt, .corpus = o->corpus};
    enum status st = OK;

    if (!o->ckpt)
        return fail(e, E_USAGE, "eval needs a checkpoint  -> bench eval --ckpt FILE --corpus FILE");
    if ((st = choose_one(&t, o, e)) != OK || (st = examine(&t, o, e)) != OK ||
        (st = can_score(&t, o, e)) != OK ||
        (st = console_open(&s->console, o, &tables[TABLE_PERPLEXITY], o->seq.n * o->mem.n, e)) !=
            OK ||
        (st = session_begin(s, e)) != OK)
        return st;
    st = score_all(s, &t, true, e);
    st = session_end(s, st, e);
    if (st == E_INTERRUPTED)
        session_say_how_to_resume(s);
    else if (!o->quiet)
        console_note(&s->console, "wrote %s/perplexity.csv", s->dir.path);
    return st;
}
