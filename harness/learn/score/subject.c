/* SPDX-License-Identifier: MIT
 *
 * Checkpoints and texts that are scored. */
#include "subject.h"
#include "harness/cli/option_words.h"
#include "harness/learn/source/counting.h"
#include "harness/learn/source/pairs.h"
#include "harness/learn/task/task.h"
#include "harness/plan/plan.h"
#include "harness/table/record.h"
#include "score.h"

#include "variants/model/import/weights.h"

/* The fastest backend of those named, or of all. */
static enum status find_backend(struct subject *t, const struct options *o, struct err *e)
{
    const struct backend *chosen[MAX_LOOKUP + 1] = {0};
    int n = 0;

    TRY(lookup_backends(chosen, &n, o, e));
    t->backend = lookup_fastest(options_given(o, "backend") ? chosen : backends, ELEM_F32);
    t->threads = o->threads.n > 0 ? o->threads.v[0] : o->default_threads;
    return OK;
}

enum status subject_engine(struct subject *t, struct engine *g, struct err *e)
{
    struct topo *topo = NULL;
    struct team team;

    TRY(find_backend(t, t->opt, e));
    TRY(topo_open(&topo, NULL, e));
    const enum status st = pin_team(&team, topo, t->opt->pin, t->threads, e);
    topo_close(topo);
    return st == OK ? engine_open(g, t->backend->name, t->threads, NULL, e) : st;
}

enum status subject_checkpoint(struct subject *t, struct err *e)
{
    struct weights w;
    enum status st = OK;

    TRY(weights_open_adapted(&w, t->ckpt, t->opt->lora, e));
    const char *unit = weights_meta(&w, "unit"), *text = weights_meta(&w, "corpus");
    int step = -1;
    t->config = t->stored = w.config;
    t->mask_share = w.mask_share;
    if (!w.is_published)
        st = safetensors_int(&w.file, "step", -1, -1, INT32_MAX, &step, e);
    t->step = step < 0 ? I64_EMPTY : step;
    t->context = w.is_published            ? w.published.context
                 : w.config.pos->positions ? w.config.pos->positions(&w.config)
                                           : w.config.max_seq;
    t->longest = w.is_published && !w.published.endless ? w.published.context : 0;
    snprintf(t->unit, sizeof(t->unit), "%s", w.is_published ? "token" : unit ? unit : "byte");
    snprintf(t->source, sizeof(t->source), "%s", weights_source(&w));
    snprintf(t->made_of, sizeof(t->made_of), "%s", text && synthetic_named(text) ? text : "");
    weights_xxh3(&w, t->ckpt_xxh3);
    if (st == OK && text && task_named(text))
        st = fail(e, E_UNSUPPORTED,
                  "checkpoint %.300s has learnt the task %.120s, no text  -> bench eval --ckpt, by "
                  "itself, says its return",
                  t->ckpt, text);
    weights_close(&w);
    return st;
}

char *subject_line(const struct subject *t, const struct options *opt, int seq, int mem,
                   enum mem_kind kind)
{
    char *const rest = options_repro(opt);
    struct bytes line;
    FILE *const f = bytes_begin(&line);
    char past[MEM_TEXT];

    fputs(SUBJECT_COMMAND, f);
    word_print_option(f, "ckpt", t->ckpt, '"');
    if (opt->lora)
        word_print_option(f, "lora", opt->lora, '"');
    word_print_option(f, opt->choices ? "choices" : "corpus", t->corpus, '"');
    mem_text(past, mem);
    fprintf(f, " --bytes %d", opt->bytes);
    word_print_option(f, "backend", t->backend->name, '\0');
    fprintf(f, " --seq %d --mem %s --mem-kind %s", seq, past, mem_kind_name[kind]);
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++) {
        char text[CHOICE_TEXT], own[CHOICE_TEXT];
        model_choice_print(text, i, &t->config, SCOPE_MODEL);
        model_choice_print(own, i, &t->stored, SCOPE_MODEL);
        if (model_choices[i].at_eval && strcmp(text, own) != 0)
            repro_choice(f, CASE_BEFORE_MODEL + i, text);
    }
    fprintf(f, " --threads %d%s", t->threads, rest);
    if (t->counts)
        counting_print(f, opt);
    bytes_end(f, &line);
    free(rest);
    return line.data;
}

/* A row has room for the line. */
static enum status check_line(const struct subject *t, const struct options *opt, struct err *e)
{
    char *const longest = subject_line(t, opt, INT_MAX, INT_MAX, MEM_RECOMPUTE);
    const size_t n = strlen(longest);

    free(longest);
    return n < LINE_SIZE ? OK
                         : fail(e, E_USAGE,
                                "the names of checkpoint and text make a line of %zu bytes, of %d "
                                "at most  -> give shorter paths",
                                n, LINE_SIZE - 1);
}

/* Else its choices are for the cases of a plan, too. */
static bool is_eval(const struct options *o) { return strcmp(o->command, "eval") == 0; }

int subject_models(const struct subject *t)
{
    int n = 1;

    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        n *= model_choices[i].at_eval ? max_int(t->opt->chosen[i].n, 1) : 1;
    return n;
}

enum status subject_choose(struct subject *t, int at, bool *again, struct err *e)
{
    int value[MODEL_CHOICE_COUNT] = {0};

    for (int i = MODEL_CHOICE_COUNT - 1; i >= 0; i--)
        if (model_choices[i].at_eval) {
            const int n = max_int(t->opt->chosen[i].n, 1);
            value[i] = at % n;
            at /= n;
        }
    t->config = t->stored;
    TRY(config_at_eval(&t->config, t->opt, value, e));
    *again = false;
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        *again |= value[i] > 0 && !choice_applies(&model_choices[i], &t->config, SCOPE_MODEL);
    return OK;
}

/* Can all of them be scored, and has a row room for their lines? */
static enum status check_models(const struct subject *t, struct err *e)
{
    struct taken taken = {0};
    struct subject one = *t;

    for (int i = 0; i < subject_models(t); i++) {
        bool again;
        TRY(subject_choose(&one, i, &again, e));
        if (!again)
            TRY(check_line(&one, t->opt, e));
        taken_add(&taken, &one.config, SCOPE_MODEL);
    }
    return is_eval(t->opt) ? taken_check(&taken, t->opt, t->stored.variant->name, e) : OK;
}

/* The symbols of a text, and its pairs, are those of the model. */
static enum status take_text(struct subject *t, const struct corpus *corpus, struct err *e)
{
    const int words = t->config.V - (t->mask_share > 0);
    struct pairs pairs = {0};

    if (t->opt->choices && (t->mask_share > 0 || t->config.enc_layers || !t->config.causal ||
                            t->config.variant->bidirectional))
        return fail(e, E_UNSUPPORTED,
                    "checkpoint %.300s has no next token for --choices  -> a causal one", t->ckpt);
    if (t->made_of[0] && corpus->vocab != words)
        return fail(e, E_IO,
                    "checkpoint %.300s has %d symbols, text %.300s has %d  -> score what it was "
                    "trained on: --corpus %s",
                    t->ckpt, words, t->corpus, corpus->vocab, t->made_of);
    if (t->config.enc_layers)
        TRY(pairs_of(&pairs, corpus, e));
    t->target = pairs.target;
    snprintf(t->corpus_xxh3, sizeof(t->corpus_xxh3), "%s", corpus->xxh3);
    t->tokens = corpus->n;
    return OK;
}

enum status subject_open(struct subject *t, const struct options *opt, struct err *e)
{
    struct corpus corpus;

    TRY(find_backend(t, opt, e));
    TRY(subject_checkpoint(t, e));
    if (!t->corpus && opt->tokens)
        t->corpus = opt->tokens;
    if (!t->corpus && !t->made_of[0])
        return fail(e, E_USAGE, "checkpoint %s needs a text to score  -> add --corpus FILE",
                    t->ckpt);
    if (!t->corpus) /* a model trained on a generated source names its text */
        t->corpus = t->made_of;
    TRY(corpus_open(&corpus, t->corpus, SPLIT_TEST, (size_t)opt->bytes, e));
    const enum status st = take_text(t, &corpus, e);
    corpus_close(&corpus);
    return st == OK ? check_models(t, e) : st;
}
