/* SPDX-License-Identifier: MIT
 *
 * Presets of --count. */
#include "counting.h"

#include "harness/cli/option_words.h"

enum { PRESETS = 8 };
static const struct preset {
    const char *name, *value; /* NULL = the model's context */
    bool of_text;             /* before it is tokens */
} presets[][PRESETS] = {
    [COUNT_STREAM] = {{NULL, NULL, false}},
    [COUNT_HF] = {{"seq", NULL, false},
                  {"mem", "0", false},
                  {"bos", "none", false},
                  {"text-join", "blank", true}},
    [COUNT_LM_EVAL] = {{"seq", NULL, false},
                       {"mem", "0", false},
                       {"doc-sep", "wikitext", true},
                       {"detok", "wikitext", true},
                       {"unit", "word", false}},
};

static const struct preset of_choices[] = {
    {"seq", NULL, false}, {"mem", "0", false}, {NULL, NULL, false}};

/* What does not apply to questions of choice, by the name of its option; NULL = none is given. */
static const char *of_texts(const struct options *o)
{
    return o->corpus                         ? "corpus"
           : o->tokens                       ? "tokens"
           : o->bytes                        ? "bytes"
           : o->count != COUNT_STREAM        ? "count"
           : o->unit != UNIT_TOKEN           ? "unit"
           : strcmp(o->bos, "auto") != 0     ? "bos"
           : strcmp(o->doc_sep, "none") != 0 ? "doc-sep"
           : o->detok                        ? "detok"
           : o->join                         ? "text-join"
           : counting_batch(o) != 1          ? "batch"
           : o->mem_begin                    ? "mem-start"
           : o->attention                    ? "attention"
                                             : NULL;
}

bool counting_lacks_text(const struct options *o)
{
    return o->tokens && (!o->corpus || strcmp(o->tokens, o->corpus) == 0);
}

/* The same check of options that are all there. */
static enum status counting_check(const struct options *o, struct err *e)
{
    const char *const how = count_name[o->count];
    char *end;

    if (o->choices && of_texts(o))
        return fail(e, E_USAGE, "--%s does not apply to --choices  -> leave it out", of_texts(o));
    for (int i = 0; o->choices && i < o->mem.n; i++)
        if (o->mem.v[i] != 0)
            return fail(e, E_USAGE, "--choices begins each question anew  -> use --mem 0");
    if (o->count != COUNT_STREAM) {
        for (int i = 0; i < o->mem.n; i++)
            if (o->mem.v[i] != 0)
                return fail(e, E_USAGE,
                            "--count %s computes each window anew, without context  -> use --mem 0",
                            how);
        if (counting_batch(o) != 1)
            return fail(e, E_USAGE, "--batch %d does not apply to --count %s  -> leave it out",
                        o->batch.v[0], how);
        if (o->losses)
            return fail(e, E_USAGE, "--losses does not apply to --count %s  -> use --count stream",
                        how);
    }
    if (o->losses && counting_batch(o) != 1)
        return fail(e, E_USAGE, "--losses does not apply to --batch %d  -> use --batch 1",
                    o->batch.v[0]);
    if (o->batch.n > 1)
        return fail(e, E_USAGE, "--batch has %d values  -> give one", o->batch.n);
    if (o->stride && o->count != COUNT_HF)
        return fail(e, E_USAGE, "--stride %d applies to --count hf only  -> leave it out",
                    o->stride);
    for (int i = 0; o->stride && i < o->seq.n; i++)
        if (o->stride > o->seq.v[i])
            return fail(e, E_USAGE,
                        "--stride %d leaves gaps between windows of --seq %d  -> lower it",
                        o->stride, o->seq.v[i]);
    if (strcmp(o->bos, "auto") != 0 && strcmp(o->bos, "none") != 0 && strcmp(o->bos, "each") != 0) {
        const long id = strtol(o->bos, &end, 10);
        if (end == o->bos || *end || id < 0 || id > INT32_MAX)
            return fail(e, E_USAGE,
                        "--bos \"%.40s\" is unknown  -> use auto, none, each, or a token id",
                        o->bos);
    }
    if (strcmp(o->bos, "each") == 0 && o->count != COUNT_HF)
        return fail(e, E_USAGE, "--bos each does not apply to --count %s  -> use --count hf", how);
    if (strcmp(o->bos, "none") == 0 && o->count == COUNT_LM_EVAL)
        return fail(e, E_USAGE,
                    "--bos none does not apply to --count lm-eval, which predicts the first token "
                    "too  -> use --bos auto");
    if (o->unit != UNIT_TOKEN && counting_batch(o) != 1)
        return fail(e, E_USAGE,
                    "--unit %s: --batch %d drops the end of a text, whose %ss are not counted  -> "
                    "use --unit token",
                    unit_name[o->unit], o->batch.v[0], unit_name[o->unit]);
    if (o->unit != UNIT_TOKEN && counting_lacks_text(o))
        return fail(e, E_USAGE, "--unit %s: --tokens alone have no %ss  -> --corpus TEXT beside it",
                    unit_name[o->unit], unit_name[o->unit]);
    if (o->tokens_type && !o->tokens)
        return fail(e, E_USAGE, "--tokens-type %s without --tokens  -> leave it out",
                    id_type_name[o->tokens_type]);
    if (o->tokens && o->bytes)
        return fail(e, E_USAGE,
                    "--bytes %d does not apply to a text that has --tokens  -> leave it out",
                    o->bytes);
    if (o->tokens && (o->tokenizer || o->detok || o->join || strcmp(o->doc_sep, "none") != 0))
        return fail(e, E_USAGE,
                    "--tokenizer, --detok, --text-join and --doc-sep do not apply to --tokens  -> "
                    "leave them out");
    return OK;
}

enum status counting_preset(struct options *o, int context, struct err *e)
{
    for (const struct preset *p = o->choices ? of_choices : presets[o->count]; p->name; p++) {
        char number[16];
        snprintf(number, sizeof(number), "%d", context);
        if (p->of_text && o->tokens) /* which are made already */
            continue;
        if (!p->value && !context && !options_given(o, p->name))
            return fail(e, E_USAGE,
                        "--%s: the checkpoint does not say its context  -> give --seq N",
                        o->choices ? "choices" : "count");
        TRY(options_default(o, p->name, p->value ? p->value : number, e));
    }
    return counting_check(o, e);
}

void counting_print(FILE *f, const struct options *o)
{
    if (o->tokenizer)
        word_print_option(f, "tokenizer", o->tokenizer, '"');
    if (o->tokens)
        word_print_option(f, "tokens", o->tokens, '"');
    if (o->tokens_type)
        fprintf(f, " --tokens-type %s", id_type_name[o->tokens_type]);
    if (o->mem_begin)
        fprintf(f, " --mem-start %s", mem_begin_name[o->mem_begin]);
    const bool preset = o->count != COUNT_STREAM;
    if (preset)
        fprintf(f, " --count %s", count_name[o->count]);
    if (preset || o->unit)
        fprintf(f, " --unit %s", unit_name[o->unit]);
    if (o->count == COUNT_HF)
        fprintf(f, " --stride %d", o->stride);
    if (preset || strcmp(o->bos, "auto") != 0)
        fprintf(f, " --bos %s", o->bos);
    if (preset || strcmp(o->doc_sep, "none") != 0)
        word_print_option(f, "doc-sep", o->doc_sep, '"');
    if (preset || o->detok)
        fprintf(f, " --detok %s", detok_name[o->detok]);
    if (preset || o->join)
        fprintf(f, " --text-join %s", join_name[o->join]);
    if (counting_batch(o) != 1)
        fprintf(f, " --batch %d", o->batch.v[0]);
}

int counting_batch(const struct options *o) { return o->batch.n > 0 ? o->batch.v[0] : 1; }
