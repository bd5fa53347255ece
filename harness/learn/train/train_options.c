/* SPDX-License-Identifier: MIT
 *
 * The options of one training. */
#include "train.h"

#include "harness/plan/plan.h"
#include "schedule.h"
#include "train_from.h"
#include "train_texts.h"

/* With an encoder and a decoder: defaults that follow from the text, whose targets --seq is as long
 * as. */
static enum status settle_pairs(struct options *o, struct err *e)
{
    char target[16], sources[KEYED_TEXT];
    struct synthetic s = {0};

    TRY(options_default(o, "corpus", "reverse:n=16,alphabet=16", e));
    if (synthetic_named(o->corpus))
        TRY(synthetic_parse(&s, o->corpus, e));
    const int length = s.kind ? synthetic_pair(&s).target : 0;
    if (length == 0)
        return fail(
            e, E_USAGE,
            "--objective seq2seq: text %.200s has no pairs of a source and a target  -> use %s",
            o->corpus, synthetic_pairs(sources));
    snprintf(target, sizeof(target), "%d", length);
    TRY(options_default(o, "seq", target, e));
    if (o->seq.n != 1 || o->seq.v[0] != length)
        return fail(e, E_USAGE,
                    "--objective seq2seq: targets of %.200s have %d symbols  -> use --seq %d, or "
                    "leave it out",
                    o->corpus, length, length);
    return OK;
}

/* Defaults that depend on the machine and the sources; those of sizes stand in the table of
 * commands, that of the backend follows from the model. */
static enum status set_defaults(struct options *o, int threads, struct err *e)
{
    char number[16];

    if (!o->task && !o->tokens)
        TRY(o->objective == OBJECTIVE_SEQ2SEQ ? settle_pairs(o, e)
                                              : options_default(o, "corpus", SOURCE_DEFAULT, e));
    if (o->objective != OBJECTIVE_LM)
        TRY(options_default(o, "mem", "0", e));
    snprintf(number, sizeof(number), "%d", threads);
    return options_default(o, "threads", number, e);
}

/* What is for texts only, and for tasks only. */
static enum status text_or_task(const struct options *o, struct err *e)
{
    static const char *const texts[] = {"corpus",    "valid",  "z-loss",    "dropout",
                                        "objective", "tokens", "tokenizer", "from"};
    static const char *const tasks[] = {"discount", "trace", "value-coef", "entropy-coef"};

    for (size_t i = 0; o->task && i < ARRAY_LEN(texts); i++)
        if (options_given(o, texts[i]))
            return fail(e, E_USAGE, "--task and --%s exclude each other  -> leave one of them out",
                        texts[i]);
    for (size_t i = 0; !o->task && i < ARRAY_LEN(tasks); i++)
        if (options_written(o, tasks[i]))
            return fail(e, E_USAGE, "--%s applies to tasks only  -> add --task, or leave it out",
                        tasks[i]);
    return OK;
}

static enum status one_value(const char *option, int n, struct err *e)
{
    return n == 1
               ? OK
               : fail(e, E_USAGE, "train takes one value of --%s, not %d  -> train them one by one",
                      option, n);
}

static enum status one_of_each(const struct options *o, struct err *e)
{
    const struct {
        const char *name;
        int n;
    } lists[] = {{"seq", o->seq.n},       {"mem", o->mem.n},         {"batch", o->batch.n},
                 {"layers", o->layers.n}, {"threads", o->threads.n}, {"variant", o->variants.n}};

    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        TRY(one_value(lists[i].name, lists[i].n, e));
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        if (o->chosen[i].n > 1)
            TRY(one_value(model_choices[i].option, o->chosen[i].n, e));
    if (is_variant_set(o->variants.v[0]))
        return fail(e, E_USAGE, "train needs a variant  -> bench train --variant NAME --ckpt FILE");
    if ((float)o->dropout >= 1) /* the float that is used */
        return fail(e, E_USAGE, "--dropout %g drops everything  -> use less than 1, such as 0.1",
                    o->dropout);
    if (options_written(o, "weight-decay-of") && o->weight_decay == 0)
        return fail(e, E_USAGE, "--weight-decay-of without a decay  -> add --weight-decay W");
    if (options_written(o, "muon-scale") && o->optimizer != OPTIMIZER_MUON)
        return fail(e, E_USAGE, "--muon-scale without Muon  -> add --optimizer muon");
    if (options_written(o, "mask-share") && o->objective != OBJECTIVE_MLM)
        return fail(e, E_USAGE, "--mask-share without hidden tokens  -> add --objective mlm");
    if (!o->ckpt)
        return fail(e, E_USAGE, "train needs a file for the weights  -> add --ckpt FILE");
    return schedule_check(o, e);
}

enum status train_settle(struct options *o, int threads, struct err *e)
{
    const struct variant *chosen[MAX_LOOKUP];
    const struct backend *backend[MAX_LOOKUP];
    struct config c;
    int n = 0;

    TRY(text_or_task(o, e));
    TRY(train_texts_check(o, e));
    if (o->lora && (!o->from || o->train_only.n > 0))
        return fail(e, E_USAGE,
                    "--lora trains what it adds to the maps of --from, and no more  -> %s",
                    o->from ? "leave --train-only out" : "add --from MODEL");
    if (o->from)
        TRY(train_from_settle(o, e));

    TRY(set_defaults(o, threads, e));
    TRY(one_of_each(o, e));
    TRY(lookup_variants(chosen, &n, o, e));
    o->variants.v[0] = chosen[0]->name; /* an alias becomes the name */
    TRY(train_config(&c, chosen[0], o, 2, e));
    TRY(options_default(o, "backend", lookup_fastest(backends, c.dtype)->name, e));
    TRY(one_value("backend", o->backends.n, e));
    TRY(lookup_backends(backend, &n, o, e));
    return config_check(&c, e);
}
