/* SPDX-License-Identifier: MIT
 *
 * Reads texts, cuts them into documents and makes tokens of them. */
#include "texts.h"

#include "counting.h"
#include "harness/tokens/prose.h"
#include "harness/tokens/token_file.h"
#include "harness/tokens/unicode.h"

struct maker {
    struct texts *t;
    const struct options *o;
    struct tokenizer *tokenizer; /* NULL = tokens are bytes */
    struct ids ids;
    int32_t front[16]; /* what stands in front of each document */
    int n_front;
    int twice; /* documents that begin with the last of these themselves */
};

static void put_front(struct maker *m, int32_t id)
{
    if (id >= 0 && m->n_front < (int)ARRAY_LEN(m->front))
        m->front[m->n_front++] = id;
}

/* Notes in one line, each "what  -> what to do". */
static void add_note(struct texts *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add_note(struct texts *t, const char *fmt, ...)
{
    char note[sizeof(t->note)];

    VPRINT(note, sizeof(note), fmt);
    text_append(t->note, sizeof(t->note), "%s%s", *t->note ? "; " : "", note);
}

/* tokenizer_config.json and tokenizer.json disagree, and programs obey either. */
static void say_switched(struct maker *m)
{
    const enum switched how = tokenizer_switched(m->tokenizer);

    if (how)
        add_note(
            m->t, "%s token in front, as add_bos_token of tokenizer_config.json says  -> --bos %s",
            how == SWITCHED_ON ? "a" : "no", how == SWITCHED_ON ? "none for none" : "ID for one");
}

/* The tokens in front of a text. */
static enum status find_front(struct maker *m, struct err *e)
{
    const struct options *const o = m->o;
    const bool usual = strcmp(o->bos, "auto") == 0 || strcmp(o->bos, "each") == 0;
    int n = 0;

    m->t->over = -1;
    if (strcmp(o->bos, "none") == 0)
        return OK;
    if (!usual) {
        m->front[m->n_front++] = (int32_t)strtol(o->bos, NULL, 10);
    } else if (m->tokenizer && o->count == COUNT_LM_EVAL) { /* one, whatever the tokenizer puts */
        put_front(m, tokenizer_begin(m->tokenizer));
    } else if (m->tokenizer) {
        const int32_t *const prefix = tokenizer_prefix(m->tokenizer, &n);
        for (int i = 0; i < n; i++)
            put_front(m, prefix[i]);
        if (n == 0 && strcmp(o->bos, "each") == 0)
            put_front(m, tokenizer_begin(m->tokenizer));
        say_switched(m);
    }
    if (m->n_front == 0 && (o->count == COUNT_LM_EVAL || strcmp(o->bos, "each") == 0))
        return fail(e, E_USAGE,
                    "--count %s and --bos %s need a token that begins a text, and the tokenizer "
                    "has none  -> give --bos ID",
                    count_name[o->count], o->bos);
    if (m->n_front && strcmp(o->bos, "each") == 0)
        m->t->over = m->front[0];
    return OK;
}

static enum status add_front(struct maker *m, struct err *e)
{
    for (int i = 0; i < m->n_front; i++)
        TRY(ids_append(&m->ids, m->front[i], e));
    return OK;
}

static enum status encode(struct maker *m, const char *text, size_t n, struct err *e)
{
    if (m->tokenizer)
        return tokenizer_encode(m->tokenizer, text, n, &m->ids, e);
    for (size_t i = 0; i < n; i++)
        TRY(ids_append(&m->ids, (unsigned char)text[i], e));
    return OK;
}

/* The ids from `begin` on are a document. */
static enum status end_document(struct maker *m, size_t begin, struct err *e)
{
    struct texts *const t = m->t;
    const size_t own = begin + (size_t)m->n_front;

    TRY(GROW(t->docs, t->n_docs, e));
    m->twice += m->n_front > 0 && own < m->ids.n && m->ids.v[own] == m->ids.v[own - 1];
    t->docs[t->n_docs++] = (struct span){begin, m->ids.n, m->n_front};
    return OK;
}

static enum status add_document(struct maker *m, const char *text, size_t n, struct err *e)
{
    struct texts *const t = m->t;
    const size_t begin = m->ids.n;
    struct bytes plain = {0};
    enum status st = OK;

    if (n == 0)
        return OK;
    t->words += (double)prose_words(text, n);
    TRY(add_front(m, e));
    if (m->o->detok)
        st = prose_detokenise(&plain, text, n, e);
    if (st == OK)
        st = plain.data ? encode(m, plain.data, plain.n, e) : encode(m, text, n, e);
    free(plain.data);
    return st == OK ? end_document(m, begin, e) : st;
}

/* Bytes of a character that the text's end has cut; 0 = none. */
static size_t cut_character(const char *text, size_t n, size_t valid)
{
    const unsigned char first = valid < n ? (unsigned char)text[valid] : 0;
    const size_t whole = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
    size_t length = 0;

    if (valid < n)
        utf8_next(text + valid, n - valid, &length);
    return length == n - valid && length < whole ? length : 0;
}

/* A tokenizer reads characters: is the text some? Where --bytes cuts one, the text ends before it.
 */
static enum status check_characters(struct maker *m, const struct corpus *c, size_t *n,
                                    struct err *e)
{
    const char *const text = (const char *)c->bytes;
    const size_t valid = m->tokenizer ? utf8_valid(text, c->n) : c->n;
    const size_t cut = c->n == (size_t)m->o->bytes ? cut_character(text, c->n, valid) : 0;

    *n = c->n - cut;
    if (valid < *n)
        return fail(e, E_IO, "text %s: byte %zu is not UTF-8  -> convert it", c->name, valid);
    if (cut > 0)
        add_note(m->t, "--bytes %d cuts a character: the text ends before it  -> --bytes %zu",
                 m->o->bytes, *n);
    return OK;
}

static enum status cut(struct maker *m, const struct corpus *c, struct err *e)
{
    struct documents d = {.sep = m->o->doc_sep};
    struct bytes joined = {0};
    const char *text;
    size_t n, all;
    enum status st = OK;

    TRY(check_characters(m, c, &all, e));
    if (m->o->join)
        TRY(prose_join(&joined, (const char *)c->bytes, all, e));
    d.at = joined.data ? joined.data : (const char *)c->bytes;
    d.end = d.at + (joined.data ? joined.n : all);
    while (st == OK && document_next(&d, &text, &n))
        st = add_document(m, text, n, e);
    m->t->bytes = (double)all;
    if (joined.data)
        m->t->words = (double)prose_words((const char *)c->bytes, all);
    free(joined.data);
    return st;
}

/* Ids that were made elsewhere. */
static enum status read_ids(struct maker *m, struct err *e)
{
    TRY(add_front(m, e));
    TRY(token_file_read(&m->ids, m->o->tokens, (enum id_type)m->o->tokens_type, e));
    m->t->unit = "token";
    m->t->of_bytes = false;
    return end_document(m, 0, e);
}

static enum status make(struct maker *m, const struct corpus *c, const char *tokenizer,
                        struct err *e)
{
    struct texts *const t = m->t;
    const struct options *const o = m->o;

    if (tokenizer)
        TRY(tokenizer_open(&m->tokenizer, tokenizer, e));
    TRY(find_front(m, e));
    if (o->tokens) {
        TRY(read_ids(m, e));
        const bool alone = counting_lacks_text(o);
        t->bytes = alone ? NAN : (double)c->n;
        t->words = alone ? NAN : (double)prose_words((const char *)c->bytes, c->n);
    } else
        TRY(cut(m, c, e));
    if (m->twice > 0)
        add_note(m->t, "%d of %zu texts begin with the token put in front, so twice  -> --bos none",
                 m->twice, m->t->n_docs);
    if (m->tokenizer) {
        t->of_bytes = false;
        t->vocab = tokenizer_vocab(m->tokenizer);
        t->unit = tokenizer_lists_words(m->tokenizer) ? "word" : "token";
        t->oov = tokenizer_lists_words(m->tokenizer) && !o->tokens ? (double)m->ids.unknown : NAN;
    }
    for (size_t i = 0; i < m->ids.n; i++)
        t->vocab = max_int(t->vocab, m->ids.v[i] == INT32_MAX ? INT32_MAX : m->ids.v[i] + 1);
    return OK;
}

enum status texts_make(struct texts *t, const struct corpus *c, const struct options *o,
                       const char *tokenizer, struct err *e)
{
    struct maker m = {.t = t, .o = o};

    *t = (struct texts){.of_bytes = true,
                        .unit = c->unit,
                        .vocab = o->tokens ? 0 : c->vocab,
                        .oov = NAN,
                        .over = -1};
    const enum status st = make(&m, c, tokenizer, e);
    tokenizer_close(m.tokenizer);
    t->ids = m.ids.v;
    t->n = m.ids.n;
    return st;
}

void texts_free(struct texts *t)
{
    free(t->ids);
    free(t->docs);
    *t = (struct texts){0};
}

enum status texts_fit(const struct texts *t, const struct options *o, const char *corpus, int V,
                      struct err *e)
{
    const size_t given = o->tokens && t->n_docs > 0 ? (size_t)t->docs[0].given : 0;
    const long bos = strtol(o->bos, NULL, 10); /* 0 of a word */
    size_t at = given;

    if (bos >= V)
        return fail(e, E_USAGE,
                    "--bos %s is not below the model's vocabulary of %d  -> a lower one", o->bos,
                    V);
    while (o->tokens && at < t->n && t->ids[at] < V)
        at++;
    if (o->tokens && at < t->n)
        return fail(e, E_IO,
                    "tokens %s: id %d at place %zu (from 0) is not below the model's vocabulary of "
                    "%d  -> %s",
                    o->tokens, t->ids[at], at - given, V,
                    o->tokens_type == ID_AUTO &&
                            token_file_looks_uint16(t->ids + given, t->n - given, V)
                        ? "they may be of uint16: --tokens-type uint16"
                        : "ids of the tokenizer that it was published with");
    if (!t->of_bytes && V < t->vocab && !o->tokens)
        return fail(e, E_IO,
                    "tokenizer of %s: id %d is not below the model's vocabulary of %d  -> use the "
                    "tokenizer that it was published with",
                    o->ckpt, t->vocab - 1, V);
    if (t->of_bytes && V != t->vocab)
        return fail(e, E_IO,
                    "checkpoint %s has a vocabulary of %d, text %s has %d %ss  -> score the text "
                    "that it was trained on",
                    o->ckpt, V, corpus, t->vocab, t->unit);
    return OK;
}
