/* SPDX-License-Identifier: MIT
 *
 * See train_from.h. */
#include "train_from.h"

#include "variants/model/import/adapter.h"
#include "variants/model/import/weights.h"

#include <fnmatch.h>

/* The file that says which model it is. A training that is resumed has its own. */
static const char *model_file(const struct options *o) { return o->resume ? o->ckpt : o->from; }

/* ---- options ------------------------------------------------------------------------------ */

static enum status refuse_option(const struct options *o, const char *name, struct err *e)
{
    return options_written(o, name) ? fail(e, E_USAGE,
                                           "--from and --%s exclude each other: the weights decide "
                                           "it  -> leave one of them out",
                                           name)
                                    : OK;
}

/* What weights decide: sizes, and choices that a parameter depends on. */
static enum status refuse_decided(const struct options *o, struct err *e)
{
    static const char *const decided[] = {"variant",  "layers", "d-model",   "heads",
                                          "kv-heads", "d-head", "d-inner",   "set",
                                          "skeleton", "init",   "objective", "task"};

    for (size_t i = 0; i < ARRAY_LEN(decided); i++)
        TRY(refuse_option(o, decided[i], e));
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        if (!model_choices[i].at_eval && !o->resume)
            TRY(refuse_option(o, model_choices[i].option, e));
    return OK;
}

/* The checkpoint is removed before the first step. */
static enum status refuse_itself(const struct options *o, struct err *e)
{
    struct stat from, to;

    if (!o->resume && o->ckpt && stat(o->from, &from) == 0 && stat(o->ckpt, &to) == 0 &&
        from.st_dev == to.st_dev && from.st_ino == to.st_ino)
        return fail(e, E_USAGE, "--from and --ckpt are one file, %.300s  -> write to another",
                    o->ckpt);
    return OK;
}

static enum status check_model(const struct weights *w, const struct options *o, struct err *e)
{
    const struct config *const c = &w->config;
    const char *const text = weights_meta(w, "corpus");

    if (text && task_named(text))
        return fail(e, E_UNSUPPORTED,
                    "--from %.300s has learnt the task %.120s, no text  -> train it with --task",
                    o->from, text);
    if (w->mask_share > 0 || c->enc_layers || c->variant->bidirectional || !c->causal)
        return fail(e, E_UNSUPPORTED,
                    "--from %.300s predicts no next token  -> use a model that does", o->from);
    return OK;
}

/* What it was trained on is what it goes on with, if it can be generated again. */
static enum status settle_text(struct options *o, const struct weights *w, struct err *e)
{
    const char *const text = weights_meta(w, "corpus");

    if (o->tokens && options_written(o, "corpus"))
        return fail(e, E_USAGE,
                    "--tokens and --corpus exclude each other  -> leave one of them out");
    if (o->tokens || options_given(o, "corpus"))
        return OK;
    if (!text || !synthetic_named(text))
        return fail(
            e, E_USAGE,
            "--from %.300s needs a text to train on  -> add --corpus FILE, or --tokens FILE",
            o->from);
    return options_default(o, "corpus", text, e);
}

static enum status settle_by(struct options *o, const struct weights *w, struct err *e)
{
    char mem[16];

    /* Memories as long as they were; others see their segment, as they were published to. */
    snprintf(mem, sizeof(mem), "%d", w->config.mem_len);
    TRY(check_model(w, o, e));
    TRY(settle_text(o, w, e));
    TRY(options_default(o, "mem", mem, e));
    return options_default(o, "variant", w->config.variant->name, e);
}

enum status train_from_settle(struct options *o, struct err *e)
{
    struct weights w;

    TRY(refuse_decided(o, e));
    TRY(refuse_itself(o, e));
    TRY(weights_open(&w, model_file(o), e));
    const enum status st = settle_by(o, &w, e);
    weights_close(&w);
    return st;
}

/* ---- model -------------------------------------------------------------------------------- */

enum status train_from_config(struct config *to, const struct options *o, struct err *e)
{
    struct weights w;

    TRY(weights_open(&w, model_file(o), e));
    *to = w.config;
    weights_close(&w);
    return config_at_eval(to, o, NULL, e);
}

enum status train_from_fits(const struct trainer *t, struct err *e)
{
    struct config c;

    TRY(train_from_config(&c, t->opt, e));
    return c.V == t->corpus.vocab ? OK
                                  : fail(e, E_IO,
                                         "checkpoint %.300s has %d symbols, text %.300s has %d  -> "
                                         "train it on a text of as many, such as its own",
                                         model_file(t->opt), c.V, t->corpus.name, t->corpus.vocab);
}

enum status train_from_load(struct trainer *t, struct err *e)
{
    struct params model = lora_model(&t->lora, &t->lm.params);
    struct weights w;

    TRY(weights_open(&w, t->opt->from, e));
    const enum status st = weights_load(&w, &model, e);
    weights_close(&w);
    return st;
}

/* "r=8", "alpha=16", or "on=PATTERN", which is left for later */
static enum status read_word(struct lora *l, const char *word, struct err *e)
{
    enum { MOST = 4096 };

    if (text_begins(word, "r="))
        return number_parse(&l->rank, "--lora r", word + strlen("r="), 1, MOST, e);
    if (text_begins(word, "alpha="))
        return decimal_parse(&l->alpha, "--lora alpha", word + strlen("alpha="), 0, MOST, OPEN_LOW,
                             e);
    return text_begins(word, "on=")
               ? OK
               : fail(e, E_USAGE, "--lora %.60s: no such word  -> --lora r=8,alpha=16,on=PATTERN",
                      word);
}

enum status train_from_only(struct params *p, const char *option, const struct names *patterns,
                            struct err *e)
{
    for (int i = 0; i < p->n; i++)
        p->v[i].frozen = patterns->n > 0;
    for (int k = 0; k < patterns->n; k++) {
        bool any = false;
        for (int i = 0; i < p->n; i++)
            if (fnmatch(patterns->v[k], p->v[i].name, 0) == 0) {
                p->v[i].frozen = false;
                any = true;
            }
        if (!any)
            return fail(e, E_USAGE,
                        "--%s\"%.60s\" covers no parameter  -> such as %s, or 'layers.*.attn.*'",
                        option, patterns->v[k], p->v[p->n - 1].name);
    }
    return OK;
}

/* `words` is cut at its commas; `on` has room for all patterns in it. */
static enum status add_lora(struct trainer *t, const struct weights *w, char *words,
                            struct names *on, struct err *e)
{
    t->lora.rank = 8;
    for (char *word, *rest = words; (word = strsep(&rest, ","));) {
        TRY(read_word(&t->lora, word, e));
        if (text_begins(word, "on="))
            on->v[on->n++] = word + strlen("on=");
    }
    if (t->lora.alpha == 0)
        t->lora.alpha = 2 * t->lora.rank;
    TRY(train_from_only(&t->lm.params, "lora on=", on, e));
    const bool folder =
        w->is_published && !w->published.form.computed; /* of peft's names and rows */
    return lora_add(&t->lora, &t->lm.params, folder ? adapter_place : NULL, &w->published, e);
}

enum status train_from_lora(struct trainer *t, struct err *e)
{
    struct weights w;

    if (!t->opt->lora)
        return OK;
    TRY(weights_open(&w, t->opt->from, e));
    char *const words = need_text("%s", t->opt->lora);
    struct names on = {need_room(strlen(words) + 1, sizeof(*on.v)), 0};
    const enum status st = add_lora(t, &w, words, &on, e);
    weights_close(&w);
    free(on.v);
    free(words);
    return st;
}

/* What the weights of `path` say. *lacks: they read tokens, and of which tokenizer is not known. */
static enum status names_in(struct trainer *t, const char *path, bool *lacks, struct err *e)
{
    struct weights w;
    enum status st = OK;

    TRY(weights_open(&w, path, e));
    const char *const unit = weights_meta(&w, "unit");
    const bool of_bytes =
        !w.is_published && (!unit || strcmp(unit, "byte") == 0 || strcmp(unit, "symbol") == 0);
    if (!*t->origin)
        snprintf(t->origin, sizeof(t->origin), "%s", weights_source(&w));
    if (!of_bytes && !*t->tokenizer)
        st = weights_tokenizer(&w, t->tokenizer, e);
    *lacks = !of_bytes && !*t->tokenizer;
    weights_close(&w);
    return st;
}

enum status train_from_names(struct trainer *t, struct err *e)
{
    bool lacks;

    TRY(names_in(t, model_file(t->opt), &lacks, e));
    return lacks && t->opt->resume
               ? names_in(t, t->opt->from, &lacks, e) /* a GGUF file, not copied */
               : OK;
}
