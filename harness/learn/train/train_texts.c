/* SPDX-License-Identifier: MIT
 *
 * Which texts a training reads, as bytes, symbols or tokens. */
#include "train_texts.h"
#include "train_from.h"

#include "harness/tokens/tokenizer.h"
#include "variants/base/gguf.h"

enum status train_texts_check(const struct options *o, struct err *e)
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

static enum status find_tokenizer(struct trainer *t, struct err *e)
{
    const char *const said = t->opt->tokenizer;

    if (said &&
        snprintf(t->tokenizer, sizeof(t->tokenizer), "%s", said) >= (int)sizeof(t->tokenizer))
        return file_fail(e, "open", said, ENAMETOOLONG);
    return t->opt->from ? train_from_names(t, e) : OK;
}

static bool are_bytes(const struct trainer *t) { return !*t->tokenizer && !t->opt->tokens; }

struct source_pair train_pair(const struct options *o)
{
    struct synthetic s;

    CHECK(synthetic_named(o->corpus) && synthetic_parse(&s, o->corpus, NULL) == OK);
    return synthetic_pair(&s);
}

/* A generated text is as long as the run needs it, up to a bound; then it starts again. */
static size_t symbols_needed(const struct options *o)
{
    enum { LONGEST = 1 << 26, SHORTEST = 1 << 16 };
    const bool pairs = o->objective == OBJECTIVE_SEQ2SEQ;
    const double each = o->seq.v[0] + (pairs ? train_pair(o).source + 1 : 0);
    const double need = (double)o->steps * o->batch.v[0] * each + 1;

    return o->minutes > 0 || need > LONGEST ? LONGEST : need < SHORTEST ? SHORTEST : (size_t)need;
}

/* Are the bytes or symbols of the texts those of the model? */
static enum status check_symbols(const struct trainer *t, struct err *e)
{
    const int V = t->corpus.vocab;

    if (t->valid_corpus.vocab > V)
        return fail(e, E_USAGE,
                    "--valid %.300s has %d symbols, text %.300s has %d  -> give one of as many",
                    t->valid_corpus.name, t->valid_corpus.vocab, t->corpus.name, V);
    return t->opt->from ? train_from_fits(t, e) : OK;
}

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

static enum status open_tokens(struct trainer *t, struct err *e)
{
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
    if (!o->valid)
        return OK;
    TRY(corpus_open(&t->valid_corpus, o->valid, SPLIT_VALID, 0, e));
    TRY(make(&t->valid_made, t, &t->valid_corpus, o->tokens ? o->valid : NULL, t->corpus.vocab, e));
    t->valid = (struct text_part){.ids = t->valid_made.ids, .n = t->valid_made.n};
    return OK;
}

/* The last twentieth validates where no other text does. */
static void split(struct trainer *t)
{
    enum { VALID_SHARE = 20 };
    const size_t n = t->text.n / VALID_SHARE;

    t->text.n -= n;
    t->valid = t->text;
    t->valid.n = n;
    if (t->valid.ids)
        t->valid.ids += t->text.n;
    else
        t->valid.at += t->text.n;
}

enum status train_texts_open(struct trainer *t, struct err *e)
{
    const struct options *o = t->opt;
    const char *const file = o->tokens ? o->tokens : o->corpus;
    const bool generated = !o->tokens && synthetic_named(file);

    TRY(find_tokenizer(t, e));
    TRY(corpus_open(&t->corpus, file, SPLIT_TRAIN,
                    o->bytes    ? (size_t)o->bytes
                    : generated ? symbols_needed(o)
                                : 0,
                    e));
    t->text = (struct text_part){.at = t->corpus.bytes, .n = t->corpus.n};
    if (!are_bytes(t)) {
        TRY(open_tokens(t, e));
    } else {
        if (generated || o->valid)
            TRY(corpus_open(&t->valid_corpus, o->valid ? o->valid : o->corpus, SPLIT_VALID, 0, e));
        t->valid = (struct text_part){.at = t->valid_corpus.bytes, .n = t->valid_corpus.n};
        TRY(check_symbols(t, e));
    }
    if (!generated && !o->valid)
        split(t);
    return OK;
}

enum status train_texts_check_length(struct trainer *t, struct err *e)
{
    if (t->valid.n > VALID_TOKENS)
        t->valid.n = VALID_TOKENS;
    if (t->text.n / (size_t)t->all_B <= (size_t)t->L || t->valid.n < 2)
        return fail(e, E_USAGE,
                    "text %s: %zu %ss are too few for --batch %d --seq %d  -> lower them",
                    t->corpus.name, t->text.n, t->corpus.unit, t->all_B, t->L);
    return OK;
}

enum status train_texts_keep(struct trainer *t, const char *ckpt, struct err *e)
{
    char folder[FILE_PATH];
    bool any = false;

    t->beside[0] = '\0';
    if (!*t->tokenizer || gguf_is(t->tokenizer))
        return OK;
    if (snprintf(folder, sizeof(folder), "%s.tokenizer", ckpt) >= (int)sizeof(folder))
        return file_fail(e, "create", ckpt, ENAMETOOLONG);
    if (!t->opt->resume && t->ranks.index == 0)
        TRY(tokenizer_copy(t->tokenizer, folder, &any, e));
    if (any || (t->opt->resume && access(folder, F_OK) == 0))
        snprintf(t->beside, sizeof(t->beside), "%s", path_name(folder));
    return OK;
}
