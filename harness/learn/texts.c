/* SPDX-License-Identifier: MIT
 *
 * Texts as tokens. */
#include "texts.h"

#include "harness/tokens/prose.h"
#include "harness/tokens/tokenizer.h"
#include "harness/util/grow.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct maker {
    struct texts *t;
    const struct options *o;
    struct tokenizer *tokenizer; /* NULL = tokens are bytes */
    struct ids ids;
    int32_t front[16]; /* what stands in front of each document */
    int n_front;
};

static bool counts_each(const struct options *o)
{
    return o->count == COUNT_CHUNKS || strcmp(o->bos, "each") == 0;
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
    } else if (m->tokenizer) {
        const int32_t *const prefix = tokenizer_prefix(m->tokenizer, &n);
        for (int i = 0; i < n && i < (int)ARRAY_LEN(m->front); i++)
            m->front[m->n_front++] = prefix[i];
        const int32_t begin = tokenizer_begin(m->tokenizer);
        if (n == 0 && begin >= 0 && (o->count == COUNT_LM_EVAL || strcmp(o->bos, "each") == 0))
            m->front[m->n_front++] = begin;
    }
    if (m->n_front == 0 && (o->count == COUNT_LM_EVAL || strcmp(o->bos, "each") == 0))
        return fail(e, E_USAGE,
                    "no token begins a text here, as --count %s and --bos %s need  -> --bos ID",
                    count_name[o->count], o->bos);
    if (m->n_front && counts_each(o))
        m->t->over = m->front[0];
    return OK;
}

static enum status add_id(struct maker *m, int32_t id, struct err *e)
{
    const enum status st = GROW(m->ids.v, m->ids.n, e);

    if (st == OK)
        m->ids.v[m->ids.n++] = id;
    return st;
}

static enum status encode(struct maker *m, const char *text, size_t n, struct err *e)
{
    enum status st = OK;

    if (m->tokenizer) {
        struct ids one = {0};
        st = tokenizer_encode(m->tokenizer, text, n, &one, e);
        for (size_t i = 0; st == OK && i < one.n; i++)
            st = add_id(m, one.v[i], e);
        m->ids.unknown += one.unknown;
        free(one.v);
        return st;
    }
    for (size_t i = 0; st == OK && i < n; i++)
        st = add_id(m, (unsigned char)text[i], e);
    return st;
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
    for (int i = 0; st == OK && i < m->n_front; i++)
        st = add_id(m, m->front[i], e);
    if (st == OK && m->o->detok)
        st = prose_detokenise(&plain, text, n, e);
    if (st == OK)
        st = plain.data ? encode(m, plain.data, plain.n, e) : encode(m, text, n, e);
    free(plain.data);
    if (st == OK)
        st = GROW(t->docs, t->n_docs, e);
    if (st == OK)
        t->docs[t->n_docs++] = (struct span){begin, m->ids.n, m->n_front};
    return st;
}

static enum status cut(struct maker *m, const struct corpus *c, struct err *e)
{
    struct documents d = {.sep = m->o->doc_sep};
    struct bytes joined = {0};
    const char *text;
    size_t n;
    enum status st = OK;

    if (m->o->join)
        st = prose_join(&joined, (const char *)c->bytes, c->n, e);
    d.at = joined.data ? joined.data : (const char *)c->bytes;
    d.end = d.at + (joined.data ? joined.n : c->n);
    while (st == OK && document_next(&d, &text, &n))
        st = add_document(m, text, n, e);
    m->t->bytes = (double)c->n;
    if (joined.data)
        m->t->words = (double)prose_words((const char *)c->bytes, c->n);
    free(joined.data);
    return st;
}

/* Ids that were made elsewhere, int32 little-endian. */
static enum status read_ids(struct maker *m, struct err *e)
{
    struct bytes file;
    enum status st = file_read(&file, m->o->tokens, e);

    if (st != OK)
        return st;
    if (file.n % 4 || file.n < 8)
        st = fail(e, E_IO, "tokens %s: %zu bytes  -> int32 ids, 2 or more", m->o->tokens, file.n);
    for (int i = 0; st == OK && i < m->n_front; i++)
        st = add_id(m, m->front[i], e);
    for (size_t i = 0; st == OK && i < file.n; i += 4) {
        const unsigned char *const b = (const unsigned char *)file.data + i;
        const uint32_t id =
            (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
        if (id > INT32_MAX)
            st = fail(e, E_IO, "tokens %s: id %zu is negative  -> int32 ids", m->o->tokens, i / 4);
        else
            st = add_id(m, (int32_t)id, e);
    }
    free(file.data);
    if (st == OK)
        st = GROW(m->t->docs, 0, e);
    if (st == OK)
        m->t->docs[m->t->n_docs++] = (struct span){0, m->ids.n, m->n_front};
    m->t->unit = "token";
    m->t->of_bytes = false;
    return st;
}

static enum status make(struct maker *m, const struct corpus *c, const char *tokenizer,
                        struct err *e)
{
    struct texts *const t = m->t;
    const struct options *const o = m->o;
    enum status st = OK;

    if (tokenizer)
        st = tokenizer_open(&m->tokenizer, tokenizer, e);
    if (st == OK)
        st = find_front(m, e);
    if (st != OK)
        return st;
    if (o->tokens) {
        st = read_ids(m, e);
        const bool alone = strcmp(o->tokens, o->corpus) == 0;
        t->bytes = alone ? NAN : (double)c->n;
        t->words = alone ? NAN : (double)prose_words((const char *)c->bytes, c->n);
    } else
        st = cut(m, c, e);
    if (st == OK && m->tokenizer) {
        t->of_bytes = false;
        t->vocab = tokenizer_vocab(m->tokenizer);
        t->unit = tokenizer_lists_words(m->tokenizer) ? "word" : "token";
        t->oov = tokenizer_lists_words(m->tokenizer) && !o->tokens ? (double)m->ids.unknown : NAN;
    }
    for (size_t i = 0; st == OK && i < m->ids.n; i++)
        t->vocab = max_int(t->vocab, m->ids.v[i] == INT32_MAX ? INT32_MAX : m->ids.v[i] + 1);
    return st;
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
