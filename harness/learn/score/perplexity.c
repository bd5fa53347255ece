/* SPDX-License-Identifier: MIT
 *
 * Perplexity rows, for bench eval and for sweeps. */
#include "perplexity.h"

#include "harness/cli/option_words.h"
#include "harness/learn/source/counting.h"
#include "harness/table/keys.h"
#include "harness/table/run.h"
#include "score.h"
#include "score_child.h"
#include "subject.h"

#include <xxhash.h>

/* ---- one row ------------------------------------------------------------------------------ */

#define PUT(column, text) text_put(row->column, sizeof(row->column), (text))

static void put_path(char column[LINE_SIZE], const char *path)
{
    char *const exact = text_exact(path);

    text_put(column, LINE_SIZE, exact);
    free(exact);
}

/* Into a row of zeros. */
static void make_row(struct perplexity_row *row, const struct subject *t, const struct session *s,
                     const struct result *r)
{
    const struct report *p = &r->report;
    struct key_row key;

    row_clear(row, tables[TABLE_PERPLEXITY].columns, (size_t)tables[TABLE_PERPLEXITY].n);
    result_key(&key, r, s->dir.run_id, s->facts.row.host_id);
    row_set_key(&tables[TABLE_PERPLEXITY], row, &key);
    put_path(row->checkpoint, t->ckpt);
    PUT(checkpoint_xxh3, t->ckpt_xxh3);
    PUT(source, t->source);
    row->train_step = t->step;
    put_path(row->corpus, t->corpus);
    PUT(corpus_xxh3, t->corpus_xxh3);
    PUT(unit, t->unit);
    if (r->status != ROW_OK)
        return;
    /* Perplexities of a unit follow from those of a token by how many there are of each. */
    const enum unit unit = t->counts ? (enum unit)t->opt->unit : UNIT_TOKEN;
    const double units = unit == UNIT_WORD   ? p->words
                         : unit == UNIT_BYTE ? p->text_bytes
                                             : p->tokens_counted;
    const double share = p->tokens_counted / units;
    if (*p->token_is || unit)
        PUT(unit, unit ? unit_name[unit] : p->token_is);
#define PUT_real(x) (x)
#define PUT_count(x) (isfinite(x) ? (int64_t)(x) : I64_EMPTY)
#define PUT_ppl(x) exp((x)*share)
#define X(number, how, column) row->column = PUT_##how(p->number);
    SCORE_NUMBERS(X)
#undef X
#define X(share)                                                                                   \
    row->share##_ci95_low = stats_share(row->share, p->segments).low;                              \
    row->share##_ci95_high = stats_share(row->share, p->segments).high;
    if (t->opt->choices) {
        X(accuracy) X(acc_norm) X(acc_bytes) X(acc_tokens)
    }
#undef X
    row->ppl_token = exp(p->nll_sum / p->tokens_counted);
    row->ppl_word = exp(p->nll_sum / p->words);
    row->ppl_byte = exp(p->nll_sum / p->text_bytes);
    row->bits_per_byte = p->nll_sum / p->text_bytes / log(2);
    row->ppl = exp(p->nll * share);
    row->bits_per_unit = p->nll * share / log(2);
    row->tokens_per_s = p->tokens_scored / p->eval_ns * 1e9;
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
        .batch = t->counts && t->opt->batch.n > 0 ? t->opt->batch.v[0] : 1,
        .layers = t->config.steps ? t->config.steps : t->config.N,
        .config = t->config,
        .threads = t->threads,
        .opt = t->opt,
    };

    bcase.config.mem_len = max_int(0, mem);
    bcase.repro = subject_line(t, t->opt, seq, mem, kind);
    snprintf(bcase.case_id, sizeof(bcase.case_id), "%016llx",
             (unsigned long long)XXH3_64bits(bcase.repro, strlen(bcase.repro)));
    return bcase;
}

/* The row's own file in the folder of an option, if it is given; make_folder left room for its name. */
static void request_file(FILE *f, const struct bench_case *c, const char *option,
                         const char *folder, const char *ending)
{
    char name[32], path[FILE_PATH];

    if (!folder)
        return;
    snprintf(name, sizeof(name), "%s%s", c->case_id, ending);
    NEED(file_join(path, folder, name, NULL) == OK);
    word_print_option(f, option, path, '"');
}

/* The request to the child: the row's line, and the files for what else is asked of it. */
static char *request_of(const struct subject *t, const struct bench_case *c)
{
    struct bytes line;
    FILE *const f = bytes_begin(&line);

    fputs(c->repro + strlen(SUBJECT_COMMAND " "), f);
    request_file(f, c, "losses", t->opt->losses, t->opt->choices ? ".csv" : ".safetensors");
    request_file(f, c, "attention", t->opt->attention, ".csv");
    return bytes_end(f, &line);
}

/* Empty: of keys and values that none caches. */
static bool is_f32(const char *type) { return !*type || strcmp(type, elem_name[ELEM_F32]) == 0; }

/* Percent by which its perplexity is above that of the same in f32 in this run; NAN without one. */
static double against_f32(const struct session *s, const struct perplexity_row *row)
{
    static const char *const but[] = {"dtype", "kv_dtype", "act_dtype", NULL};
    const struct table *const t = &tables[TABLE_PERPLEXITY];
    struct rows rows = {0};
    double pct = NAN;

    if (run_table(&rows, s->dir.path, TABLE_PERPLEXITY, &(struct err){""}) != OK)
        return pct;
    const struct perplexity_row *const of = rows.row;
    for (size_t i = 0; i < rows.n; i++)
        if (is_f32(of[i].dtype) && is_f32(of[i].kv_dtype) && strcmp(of[i].status, "ok") == 0 &&
            rows_alike(t, &of[i], row, but))
            pct = 100 * (row->ppl / of[i].ppl - 1);
    rows_free(&rows);
    return pct;
}

/* Keys and values of a narrow type are cached ones. */
static bool caches(const struct config *c, enum mem_kind kind)
{
    return c->kv_dtype == ELEM_F32 || kind == MEM_KV;
}

/* Is a text seen further back than its model was made for? Its losses rise there, whatever computes
 * them. Both said and in the row. */
static void note_beyond(struct session *s, const struct subject *t, int seq, int mem,
                        struct result *r)
{
    const double within = mem == MEM_ALL ? INFINITY : (double)seq + mem;
    const double sees = fmin(within, (double)r->report.tokens_scored);

    if (!t->longest || sees <= t->longest)
        return;
    snprintf(r->detail, sizeof(r->detail), "beyond its context: %.0f tokens at once, made for %d",
             sees, t->longest);
    console_note(&s->console,
                 "warning: %.0f tokens at once, the model was made for %d (its config.json)  -> "
                 "--seq and --mem of that together, to compare with published numbers",
                 sees, t->longest);
}

static enum status score_one(struct session *s, const struct subject *t, int seq, int mem,
                             bool print, struct err *e)
{
    struct err why;
    enum mem_kind kind;
    enum status st = score_mem_kind(&kind, &t->config, t->opt, mem, e);

    if (st != OK || (!print && !caches(&t->config, kind))) /* a sweep's measured rows say why */
        return st;
    struct perplexity_row *const row = need_room(1, sizeof(*row));
    struct bench_case bcase = scored_case(t, seq, mem, kind);
    struct result r = {.bcase = &bcase};
    if (rundir_done(&s->dir, TABLE_PERPLEXITY, bcase.case_id))
        goto out;
    utc_text(r.started_at_utc, time(NULL));
    char past[MEM_TEXT];
    mem_text(past, mem);
    progress_begin(&s->console.wait, 0, "scoring %s seq=%d mem=%s", t->config.variant->name, seq,
                   past);
    char *const request = request_of(t, &bcase);
    const enum status scored =
        score_in_child(&r.report, request, &s->setup, &s->console.wait, &why);
    free(request);
    progress_end(&s->console.wait);
    if (scored != OK && *s->setup.stop) {
        st = fail(e, E_INTERRUPTED, "interrupted");
        goto out;
    }
    if (scored == E_IO && print && !s->dir.has_rows) { /* all rows of eval need the same files */
        *e = why;
        st = E_IO;
        goto out;
    }
    s->bad_file = s->bad_file || scored == E_IO;
    if (scored != OK) {
        r.status = scored == E_UNSUPPORTED ? ROW_SKIPPED
                   : scored == E_WRONG     ? ROW_WRONG
                   : scored == E_TIMEOUT   ? ROW_TIMEOUT
                                           : ROW_FAILED;
        text_put(r.detail, sizeof(r.detail), why.msg);
    } else {
        note_beyond(s, t, seq, mem, &r);
        if (scored == OK && !*r.detail)
            text_put(r.detail, sizeof(r.detail), r.report.note);
    }
    make_row(row, t, s, &r);
    if (t->config.dtype != ELEM_F32 || t->config.kv_dtype != ELEM_F32)
        row->ppl_delta_pct = against_f32(s, row);
    st = rundir_write(&s->dir, TABLE_PERPLEXITY, row, e);
    s->rows[r.status]++;
    if (scored != OK)
        console_note(&s->console, "bench: %s", why.msg);
    if (row->oov > 0)
        console_note(&s->console,
                     "warning: %lld words are not in the vocabulary and were scored as <unk>  -> "
                     "score the text that it was made for to compare with published numbers",
                     (long long)row->oov);
    const bool alike = t->config.kv_dtype == ELEM_F32; /* a note on the text is one of all rows */
    if (*r.report.note && (!alike || !print || !s->console.started))
        console_note(&s->console, "note: %s", r.report.note);
    if (print)
        perplexity_print_row(&s->console, row);
out:
    free(bcase.repro);
    free(row);
    return st;
}

static bool has_past(const struct subject *t, int mem)
{
    return score_reads_whole(&t->config, t->mask_share)
               ? mem == 0
               : mem != MEM_ALL || mem_can(config_mem(&t->config), MEM_STATE);
}

/* Lengths of what is scored at once: a target has one. */
static int n_lengths(const struct subject *t) { return t->target ? 1 : t->opt->seq.n; }
static int length_at(const struct subject *t, int i)
{
    return t->target ? t->target : t->opt->seq.v[i];
}

static enum status score_models(struct session *s, const struct subject *t, int seq, int mem,
                                bool print, struct err *e)
{
    struct subject *const one = need_room(1, sizeof(*one)); /* too large for the stack */
    enum status st = OK;

    *one = *t;
    for (int i = 0; i < subject_models(t) && st == OK; i++) {
        bool again = false;
        st = *s->setup.stop ? fail(e, E_INTERRUPTED, "interrupted")
                            : subject_choose(one, i, &again, e);
        if (st == OK && !again)
            st = score_one(s, one, seq, mem, print, e);
    }
    free(one);
    return st;
}

static enum status score_all(struct session *s, const struct subject *t, bool print, struct err *e)
{
    const struct options *o = t->opt;

    for (int i = 0; i < n_lengths(t); i++)
        for (int k = 0; k < o->mem.n; k++) {
            const int mem = o->mem.v[k];
            /* Of a sweep, which says so where it measures; or nobody has asked for it. */
            if (has_past(t, mem) || (print && options_given(o, "mem")))
                TRY(score_models(s, t, length_at(t, i), mem, print, e));
        }
    return OK;
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
    struct subject t = {.opt = o, .ckpt = path};
    struct err ignored;
    char name[128];

    if (o->ckpt) {
        snprintf(path, FILE_PATH, "%s", o->ckpt);
        return subject_checkpoint(&t, &ignored) != OK || t.config.variant == v;
    }
    snprintf(name, sizeof(name), "results/models/%s.safetensors", v->name);
    return options_locate(path, FILE_PATH, name) &&
           (o->corpus || subject_checkpoint(&t, &ignored) != OK || t.made_of[0]);
}

/* Is there a case whose context is a past, as that of a scored text is? */
static bool is_planned(const struct plan *plan, const struct variant *v)
{
    for (int i = 0; i < plan->n; i++)
        if (plan->cases[i].variant == v &&
            workload_context(plan->cases[i].workload) != CONTEXT_ROWS)
            return true;
    return false;
}

enum status sweep_perplexity_check(const struct options *o, const struct plan *plan, struct err *e)
{
    struct subject t = {.opt = o, .ckpt = o->ckpt, .corpus = o->corpus};

    if (!o->ckpt || scores_nothing(o))
        return OK;
    TRY(subject_open(&t, o, e));
    if (is_planned(plan, t.config.variant))
        return OK;
    return fail(e, E_USAGE,
                "checkpoint %s is of variant %s, which this sweep leaves out  -> add --variant %s",
                o->ckpt, t.config.variant->name, t.config.variant->name);
}

/* Call `visit` for every variant of the plan that has weights and a text. */
typedef enum status visit_fn(struct session *s, const struct subject *t, void *arg, struct err *e);
static enum status visit_weights(struct session *s, const struct plan *plan, visit_fn *visit,
                                 void *arg, struct err *e)
{
    for (int v = 0; variants[v] && !scores_nothing(s->opt); v++) {
        char path[FILE_PATH];
        if (!is_planned(plan, variants[v]) || !weights_of(variants[v], s->opt, path))
            continue;
        struct subject t = {.opt = s->opt, .ckpt = path, .corpus = s->opt->corpus};
        TRY(subject_open(&t, s->opt, e));
        TRY(visit(s, &t, arg, e));
    }
    return OK;
}

static enum status score_visited(struct session *s, const struct subject *t, void *arg,
                                 struct err *e)
{
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

static enum status add_model_time(struct session *s, const struct subject *t, int model, int seq,
                                  int mem, enum mem_kind kind, struct sum_of_times *sum,
                                  struct err *e)
{
    struct subject one = *t;
    bool again;

    TRY(subject_choose(&one, model, &again, e));
    if (again || !caches(&one.config, kind))
        return OK;
    struct bench_case c = scored_case(&one, seq, mem, kind);
    if (!rundir_done(&s->dir, TABLE_PERPLEXITY, c.case_id))
        sum->s += sum->speeds->start_s + (double)t->tokens / seq * estimate_call_s(&c, sum->speeds);
    free(c.repro);
    return OK;
}

static enum status add_time(struct session *s, const struct subject *t, void *arg, struct err *e)
{
    struct sum_of_times *sum = arg;
    const struct options *o = s->opt;
    enum mem_kind kind;

    for (int i = 0; i < n_lengths(t); i++)
        for (int k = 0; k < o->mem.n; k++) {
            if (!has_past(t, o->mem.v[k]))
                continue;
            TRY(score_mem_kind(&kind, &t->config, o, o->mem.v[k], e));
            for (int m = 0; m < subject_models(t); m++)
                TRY(add_model_time(s, t, m, length_at(t, i), o->mem.v[k], kind, sum, e));
        }
    return OK;
}

double sweep_perplexity_s(struct session *s, const struct plan *plan, const struct speeds *speeds)
{
    struct sum_of_times sum = {.speeds = speeds};

    return visit_weights(s, plan, add_time, &sum, &(struct err){""}) == OK ? sum.s : NAN;
}

/* ---- study -------------------------------------------------------------------------------- */

enum status perplexity_rows(struct session *s, const struct options *o, char first[17],
                            struct err *e)
{
    struct subject t = {.opt = o, .ckpt = o->ckpt, .corpus = o->corpus};
    enum mem_kind kind;
    bool again;

    *first = '\0';
    TRY(subject_open(&t, o, e));
    TRY(subject_choose(&t, 0, &again, e));
    TRY(score_mem_kind(&kind, &t.config, o, o->mem.v[0], e));
    struct bench_case c = scored_case(&t, length_at(&t, 0), o->mem.v[0], kind);
    snprintf(first, sizeof(c.case_id), "%s", c.case_id);
    free(c.repro);
    return score_all(s, &t, false, e);
}

/* ---- eval --------------------------------------------------------------------------------- */

static enum status can_score(const struct subject *t, const struct options *o, struct err *e)
{
    struct subject one = *t;
    enum mem_kind kind;

    if (t->target && options_given(o, "seq") && (o->seq.n != 1 || o->seq.v[0] != t->target))
        return fail(e, E_USAGE, "targets of %s have %d symbols  -> use --seq %d, or leave it out",
                    t->corpus, t->target, t->target);
    if (o->attention && o->impl)
        return fail(e, E_USAGE,
                    "--attention is computed by ref, not by --impl %s  -> leave one out", o->impl);
    for (int i = 0; i < subject_models(t); i++) {
        bool again;
        TRY(subject_choose(&one, i, &again, e));
        for (int k = 0; k < o->mem.n; k++) {
            if (options_given(o, "mem"))
                TRY(score_whole_check(&t->config, t->mask_share, o, o->mem.v[k], e));
            TRY(score_mem_kind(&kind, &one.config, o, o->mem.v[k], e));
            if (!caches(&one.config, kind))
                return fail(
                    e, E_USAGE,
                    "--kv-dtype %s applies to cached keys and values only  -> use --mem-kind kv",
                    elem_name[one.config.kv_dtype]);
        }
    }
    return OK;
}

/* f32 comes before the other types, asked for or not: they are compared with it. */
static enum status f32_first(struct names *types, struct err *e)
{
    const char *first = elem_name[ELEM_F32];

    if (types->n == 0)
        return OK;
    for (int i = 0; i < types->n; i++) { /* each one place further, up to where f32 was */
        const char *const here = types->v[i];
        types->v[i] = first;
        if (strcmp(here, elem_name[ELEM_F32]) == 0)
            return OK;
        first = here;
    }
    TRY(GROW(types->v, types->n, e));
    types->v[types->n++] = first;
    return OK;
}

enum status perplexity_presets(struct options *o, struct err *e)
{
    struct subject t = {.opt = o, .ckpt = o->ckpt};

    if (!o->ckpt)
        return OK; /* perplexity_eval says that it needs one */
    if (o->count != COUNT_STREAM || o->choices)
        TRY(subject_checkpoint(&t, e));
    if (o->choices && !t.config.pos->positions) /* and what it remembers */
        t.context += t.config.mem_len;
    TRY(f32_first(&o->chosen[CHOICE_dtype], e));
    TRY(f32_first(&o->chosen[CHOICE_kv_dtype], e));
    return counting_preset(o, t.context, e);
}

/* Of --losses and --attention; with room for the names of files in it. */
static enum status make_folder(const char *path, struct err *e)
{
    if (!path)
        return OK;
    if (strlen(path) + 64 > FILE_PATH)
        return file_fail(e, "create", path, ENAMETOOLONG);
    return file_make_folder(path, e);
}

enum status perplexity_eval(struct session *s, struct err *e)
{
    const struct options *o = s->opt;
    char ckpt[FILE_PATH];
    struct subject t = {
        .opt = o, .ckpt = ckpt, .corpus = o->choices ? o->choices : o->corpus, .counts = true};

    if (!o->ckpt)
        return fail(e, E_USAGE, "eval needs a checkpoint  -> bench eval --ckpt FILE --corpus FILE");
    (void)options_locate(ckpt, FILE_PATH, o->ckpt); /* reading says what is wrong */
    TRY(subject_open(&t, o, e));
    TRY(can_score(&t, o, e));
    TRY(console_open(&s->console, o, &tables[TABLE_PERPLEXITY],
                     n_lengths(&t) * o->mem.n * subject_models(&t), e));
    TRY(make_folder(o->losses, e));
    TRY(make_folder(o->attention, e));
    TRY(session_begin(s, e));
    const enum status st = session_end(s, score_all(s, &t, true, e), e);
    if (st == E_INTERRUPTED)
        session_say_how_to_resume(s);
    else if (!o->quiet && s->dir.has_rows)
        console_note(&s->console, "wrote %s/perplexity.csv", s->dir.path);
    return st;
}
