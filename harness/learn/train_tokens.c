/* SPDX-License-Identifier: MIT
 *
 * See train_tokens.h. */
#include "train_tokens.h"
#include "train_from.h"

#include "harness/tokens/tokenizer_copy.h"
#include "harness/util/fileio.h"
#include "variants/base/gguf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum status train_tokens_check(const struct options *o, struct err *e)
{
    static const char *const others[] = {"task", "objective"};
    const char *const option = o->tokens ? "tokens" : o->tokenizer ? "tokenizer" : NULL;

    for (size_t i = 0; option && i < ARRAY_LEN(others); i++)
        if (options_written(o, others[i]))
            return fail(e, E_USAGE, "--%s and --%s exclude each other  -> leave one of them out",
                        option, others[i]);
    if (o->tokens && !o->from)
        return fail(
            e, E_USAGE,
            "--tokens needs a model that says how many tokens there are  -> add --from DIR");
    if (options_written(o, "tokens-type") && !o->tokens)
        return fail(e, E_USAGE, "--tokens-type without --tokens  -> add --tokens FILE");
    if (o->tokenizer && o->corpus && synthetic_named(o->corpus))
        return fail(e, E_USAGE, "--tokenizer does not read the source %.60s  -> add --corpus FILE",
                    o->corpus);
    return OK;
}

enum status train_tokens_find(struct trainer *t, struct err *e)
{
    const char *const said = t->opt->tokenizer;

    if (said &&
        snprintf(t->tokenizer, sizeof(t->tokenizer), "%s", said) >= (int)sizeof(t->tokenizer))
        return file_fail(e, "open", said, ENAMETOOLONG);
    return t->opt->from ? train_from_names(t, e) : OK;
}

bool train_tokens_are_bytes(const struct trainer *t) { return !*t->tokenizer && !t->opt->tokens; }

/* A text as it is read for --from: messages name the model, not the file that is written. V: tokens
 * of the model, 0 = as many as the tokenizer has. */
static enum status make(struct texts *to, const struct trainer *t, const struct corpus *c,
                        const char *tokens, int V, struct err *e)
{
    struct options o = *t->opt;

    o.tokens = tokens;
    o.ckpt = o.from ? o.from : t->tokenizer;
    TRY(texts_make(to, c, &o, tokens ? NULL : t->tokenizer, e));
    return texts_fit(to, &o, c->name, V ? V : to->vocab, e);
}

enum status train_tokens_open(struct trainer *t, struct err *e)
{
    enum { VALID_SHARE = 20 };
    const struct options *const o = t->opt;
    struct config c = {0};

    if (o->from)
        TRY(train_from_config(&c, o, e));
    if (t->corpus.generated)
        return fail(e, E_USAGE,
                    "--corpus %.60s has symbols, which no tokenizer reads  -> give a text",
                    o->corpus);
    TRY(make(&t->tokens_made, t, &t->corpus, o->tokens, c.V, e));
    t->corpus.vocab = c.V ? c.V : t->tokens_made.vocab;
    t->corpus.unit = t->tokens_made.unit;
    t->text = (struct text_part){.ids = t->tokens_made.ids, .n = t->tokens_made.n};
    if (!o->valid) {
        const size_t n = t->text.n / VALID_SHARE;
        t->text.n -= n;
        t->valid = (struct text_part){.ids = t->text.ids + t->text.n, .n = n};
        return OK;
    }
    TRY(corpus_open(&t->valid_corpus, o->valid, SPLIT_VALID, 0, e));
    TRY(make(&t->valid_made, t, &t->valid_corpus, o->tokens ? o->valid : NULL, t->corpus.vocab, e));
    t->valid = (struct text_part){.ids = t->valid_made.ids, .n = t->valid_made.n};
    return OK;
}

enum status train_tokens_keep(struct trainer *t, const char *ckpt, struct err *e)
{
    const char *const slash = strrchr(ckpt, '/');
    char folder[FILE_PATH];
    bool any = false;

    t->beside[0] = '\0';
    if (!*t->tokenizer || gguf_is(t->tokenizer))
        return OK;
    if (snprintf(folder, sizeof(folder), "%s.tokenizer", ckpt) >= (int)sizeof(folder))
        return file_fail(e, "create", ckpt, ENAMETOOLONG);
    if (!t->opt->resume && t->ranks.index == 0)
        TRY(tokenizer_copy(t->tokenizer, folder, &any, e));
    if (any || t->opt->resume)
        snprintf(t->beside, sizeof(t->beside), "%s", folder + (slash ? slash + 1 - ckpt : 0));
    return OK;
}
