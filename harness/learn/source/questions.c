/* SPDX-License-Identifier: MIT
 *
 * Reads questions of choice. */
#include "questions.h"

#include "harness/tokens/tokenizer.h"
#include "harness/tokens/unicode.h"
#include "variants/base/json_text.h"

struct asker {
    struct questions *c;
    struct texts *t;
    struct tokenizer *tokenizer; /* NULL = tokens are bytes */
    int most;
    struct ids before, whole; /* of a context, of it and a continuation */
};

/* Tokens of a text, with what stands in front of one unless the text begins with it itself. */
static enum status encode(struct asker *m, const char *text, size_t n, bool front, struct ids *out,
                          struct err *e)
{
    int given = 0;

    out->n = 0;
    for (size_t i = 0; !m->tokenizer && i < n; i++)
        TRY(ids_append(out, (unsigned char)text[i], e));
    if (!m->tokenizer)
        return OK;
    const int32_t *const prefix = tokenizer_prefix(m->tokenizer, &given);
    const size_t at = front ? (size_t)given : 0;
    for (size_t i = 0; i < at; i++)
        TRY(ids_append(out, prefix[i], e));
    TRY(tokenizer_encode(m->tokenizer, text, n, out, e));
    if (at > 0 && out->n > at && out->v[at] == tokenizer_begin(m->tokenizer))
        memmove(out->v, out->v + at, (out->n -= at) * sizeof(*out->v));
    if (tokenizer_lists_words(m->tokenizer) && out->n > at && text[n - 1] != '\n')
        out->n--; /* <eos>, which a line that goes on does not have */
    return OK;
}

/* Bytes of a text without the white space at its end, as Python's rstrip has it. */
static size_t stripped(const char *text, size_t n)
{
    size_t end = 0, length;

    for (size_t at = 0; at < n; at += length)
        if (!is_white_or_separates(utf8_next(text + at, n - at, &length)))
            end = at + length;
    return end;
}

/* The continuation behind a context, both in `text`, of n bytes, `context` of them the context's: a
 * document with the last `most` + 1 of their tokens. */
static enum status add_continuation(struct asker *m, const char *text, size_t n, size_t context,
                                    struct err *e)
{
    const int32_t begin = m->tokenizer ? tokenizer_begin(m->tokenizer) : -1;
    struct continuation v = {.length = {1, 0, (double)(n - context)}};
    struct texts *const t = m->t;
    size_t at = 0;

    for (size_t i = context; i < n; i++) /* bytes that begin one */
        v.length[BY_CHARS] += ((unsigned char)text[i] & 0xc0) != 0x80;
    m->before.n = 0;
    if (context > 0) {
        TRY(encode(m, text, stripped(text, context), true, &m->before, e));
        at = m->before.n;
    }
    TRY(encode(m, text, n, context > 0, &m->whole, e));
    if (at == 0 && begin < 0)
        return fail(e, E_IO,
                    "no token begins a text here, and the context has none  -> give it a context");
    if (at == 0) {
        TRY(ids_append(&m->before, begin, e));
        at = m->whole.n > 0 && m->whole.v[0] == begin;
    }
    if (at >= m->whole.n)
        return fail(e, E_IO,
                    "a continuation adds no token to its context  -> let it begin elsewhere");
    if (m->whole.n - at > (size_t)m->most)
        return fail(e, E_IO, "a continuation has %zu tokens of at most %d  -> shorten it, or --seq",
                    m->whole.n - at, m->most);
    const size_t own = m->whole.n - at, begins = t->n;
    const size_t given = (size_t)min_wide((int64_t)m->before.n, m->most + 1 - (int64_t)own);
    for (size_t i = 0; i < given + own; i++) {
        TRY(GROW(t->ids, t->n, e));
        t->ids[t->n++] =
            i < given ? m->before.v[m->before.n - given + i] : m->whole.v[at + i - given];
    }
    v.length[BY_TOKENS] = (double)own;
    TRY(GROW(m->c->continuation, t->n_docs, e));
    m->c->continuation[t->n_docs] = v;
    TRY(GROW(t->docs, t->n_docs, e));
    t->docs[t->n_docs++] = (struct span){begins, t->n, (int)given};
    return OK;
}

static enum status add_question(struct asker *m, const json_t *j, struct err *e)
{
    const json_t *const context = json_object_get(j, "context"),
                        *text, *const list = json_object_get(j, "continuations"),
                        *const gold = json_object_get(j, "gold");
    const json_int_t right = json_integer_value(gold);
    const size_t n = json_array_size(list), before = json_string_length(context);
    size_t k;

    if (!json_is_string(context) || n < 1 || n > INT32_MAX)
        return fail(e, E_IO,
                    "no context with continuations  -> {\"context\": TEXT, \"continuations\": "
                    "[TEXT, ...], \"gold\": N}");
    if (!json_is_integer(gold) || right < 0 || (size_t)right >= n)
        return fail(e, E_IO,
                    "gold is not below %zu  -> the place of the right continuation, from 0", n);
    TRY(GROW(m->c->question, m->c->n, e));
    m->c->question[m->c->n++] = (struct question){m->t->n_docs, (int)n, (int)right};
    json_array_foreach(list, k, text)
    {
        const size_t own = json_string_length(text);
        char *const both = malloc(before + own + 1);
        if (!both)
            return fail(e, E_NOMEM, "no memory for %zu bytes", before + own);
        memcpy(both, json_string_value(context), before);
        if (own > 0)
            memcpy(both + before, json_string_value(text), own);
        const enum status st =
            own ? add_continuation(m, both, before + own, before, e)
                : fail(e, E_IO, "continuation %zu is empty, or not a text  -> give it one", k);
        free(both);
        TRY(st);
    }
    return OK;
}

static enum status read_all(struct asker *m, const struct corpus *file, const char *path,
                            struct err *e)
{
    const char *const begin = (const char *)file->bytes, *const end = begin + file->n;
    int line = 1;
    struct err why;
    json_error_t wrong;

    for (const char *at = begin, *stop; at < end; at = stop + 1, line++) {
        stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        json_t *const j =
            json_read(at, (size_t)(stop - at), JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &wrong);
        const enum status st =
            j ? add_question(m, j, &why)
              : fail(&why, E_IO, "not JSON (%.100s)  -> an object a line", wrong.text);
        json_decref(j);
        if (st != OK)
            return fail(e, st, "%.300s: line %d: %s", path, line, why.msg);
    }
    return OK;
}

enum status questions_make(struct questions *c, struct texts *t, const struct corpus *file,
                           const struct options *o, const char *tokenizer, int most, struct err *e)
{
    struct asker m = {.c = c, .t = t, .most = most};

    *t = (struct texts){.of_bytes = !tokenizer, .vocab = file->vocab, .over = -1};
    t->unit = tokenizer ? "token" : "byte";
    t->words = t->bytes = t->oov = NAN;
    enum status st = tokenizer ? tokenizer_open(&m.tokenizer, tokenizer, e) : OK;
    if (m.tokenizer)
        t->vocab = tokenizer_vocab(m.tokenizer);
    if (st == OK)
        st = read_all(&m, file, o->choices, e);
    tokenizer_close(m.tokenizer);
    free(m.before.v);
    free(m.whole.v);
    return st;
}

void questions_free(struct questions *c)
{
    free(c->question);
    free(c->continuation);
    *c = (struct questions){0};
}

int questions_best(const struct questions *c, const struct question *q, enum measure by)
{
    const struct continuation *const v = c->continuation + q->first;
    int best = 0;

    for (int k = 1; k < q->n; k++)
        if (v[k].nats / v[k].length[by] > v[best].nats / v[best].length[by])
            best = k;
    return best;
}
