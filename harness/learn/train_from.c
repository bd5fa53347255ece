/* SPDX-License-Identifier: MIT
 *
 * See train_from.h. */
#include "train_from.h"

#include "harness/plan/case.h"
#include "synthetic.h"
#include "task.h"
#include "variants/model/weights.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The file that says which model it is. A training that is resumed has its own. */
static const char *model_file(const struct options *o) { return o->resume ? o->ckpt : o->from; }

/* ---- options ------------------------------------------------------------------------------ */

static enum status refuse_option(const struct options *o, const char *name, struct err *e)
{
    return options_written(o, name)
               ? fail(e, E_USAGE,
                      "--from and --%s exclude each other: the weights decide it  -> leave one of "
                      "them out",
                      name)
               : OK;
}

/* What weights decide: sizes, and choices that a parameter depends on. */
static enum status refuse_decided(const struct options *o, struct err *e)
{
    static const char *const decided[] = {"variant",  "layers", "d-model",   "heads",
                                          "kv-heads", "d-head", "d-inner",   "set",
                                          "skeleton", "init",   "objective", "task"};
    enum status st = OK;

    for (size_t i = 0; st == OK && i < ARRAY_LEN(decided); i++)
        st = refuse_option(o, decided[i], e);
    for (int i = 0; st == OK && i < MODEL_CHOICE_COUNT; i++)
        if (!model_choices[i].at_eval && !o->resume)
            st = refuse_option(o, model_choices[i].option, e);
    return st;
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

enum status train_from_settle(struct options *o, struct err *e)
{
    char mem[16];
    struct weights w;
    enum status st = refuse_decided(o, e);

    if (st == OK)
        st = refuse_itself(o, e);
    if (st == OK)
        st = weights_open(&w, model_file(o), e);
    if (st != OK)
        return st;
    /* Memories as long as they were; others see their segment, as they were published to. */
    snprintf(mem, sizeof(mem), "%d", w.config.mem_len);
    st = check_model(&w, o, e);
    if (st == OK)
        st = settle_text(o, &w, e);
    if (st == OK)
        st = options_default(o, "mem", mem, e);
    if (st == OK)
        st = options_default(o, "variant", w.config.variant->name, e);
    weights_close(&w);
    return st;
}

/* ---- model -------------------------------------------------------------------------------- */

enum status train_from_config(struct config *to, const struct options *o, struct err *e)
{
    struct weights w;
    const enum status st = weights_open(&w, model_file(o), e);

    if (st != OK)
        return st;
    *to = w.config;
    weights_close(&w);
    return config_at_eval(to, o, NULL, e);
}

enum status train_from_fits(const struct trainer *t, struct err *e)
{
    struct config c;
    const enum status st = train_from_config(&c, t->opt, e);

    return st != OK || c.V == t->corpus.vocab
               ? st
               : fail(e, E_IO,
                      "checkpoint %.300s has %d symbols, text %.300s has %d  -> train it on a text "
                      "of as many, such as its own",
                      model_file(t->opt), c.V, t->corpus.name, t->corpus.vocab);
}

enum status train_from_load(struct trainer *t, struct err *e)
{
    struct weights w;
    enum status st = weights_open(&w, t->opt->from, e);

    if (st != OK)
        return st;
    st = weights_load(&w, &t->lm.params, e);
    weights_close(&w);
    return st;
}

enum status train_from_names(struct trainer *t, struct err *e)
{
    struct weights w;
    enum status st = weights_open(&w, model_file(t->opt), e);

    if (st != OK)
        return st;
    const char *const unit = weights_meta(&w, "unit");
    const bool of_bytes =
        !w.is_published && (!unit || strcmp(unit, "byte") == 0 || strcmp(unit, "symbol") == 0);
    snprintf(t->origin, sizeof(t->origin), "%s", weights_source(&w));
    if (!of_bytes && !*t->tokenizer)
        st = weights_tokenizer(&w, t->tokenizer, e);
    weights_close(&w);
    if (st == OK && !of_bytes && !*t->tokenizer && t->opt->resume)
        st = weights_open(&w, t->opt->from, e); /* of a GGUF file, which is not copied */
    else
        return st;
    if (st == OK) {
        st = weights_tokenizer(&w, t->tokenizer, e);
        weights_close(&w);
    }
    return st;
}
