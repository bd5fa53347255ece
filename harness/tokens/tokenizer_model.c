/* SPDX-License-Identifier: MIT
 *
 * Vocabularies and merges as files write them. */
#include "tokenizer_json.h"

#include <stdlib.h>
#include <string.h>

enum status tokenizer_no_memory(const struct tokenizer *t, struct err *e)
{
    return tokenizer_fail(t, E_NOMEM, e, "no memory for its files  -> free some memory");
}

/* ---- bytes as characters ------------------------------------------------------------------ */

/* Files write each byte as a character that can be seen: most as themselves, the others in order
 * from U+0100 on. -1: this character is none of them. */
static int byte_of_char(int32_t c)
{
    if ((c >= 33 && c <= 126) || (c >= 161 && c <= 172) || (c >= 174 && c <= 255))
        return c;
    return c >= 0x100 && c <= 0x120   ? c - 0x100       /* 0-32 */
           : c >= 0x121 && c <= 0x142 ? c - 0x121 + 127 /* 127-160 */
           : c == 0x143               ? 173
                                      : -1;
}

/* The bytes of a token as files write it: a copy to be freed. *apart: it holds other characters,
 * and is as it is written. */
static char *token_text(const struct tokenizer *t, const char *text, size_t n, size_t *length,
                        bool *apart)
{
    char *const copy = malloc(n + 1);
    size_t used;

    *apart = false;
    *length = n;
    if (!copy)
        return NULL;
    memcpy(copy, text, n);
    copy[n] = '\0';
    if (!t->bytes)
        return copy;
    *length = 0;
    for (size_t at = 0; at < n; at += used) {
        const int byte = byte_of_char(utf8_next(text + at, n - at, &used));
        if (byte < 0) {
            memcpy(copy, text, n);
            *length = n;
            *apart = true;
            return copy;
        }
        copy[(*length)++] = (char)byte;
    }
    copy[*length] = '\0';
    return copy;
}

/* ---- vocabulary and merges ---------------------------------------------------------------- */

enum status tokenizer_put(struct tokenizer *t, const json_t *id, const char *text, size_t n,
                          struct err *e)
{
    size_t length;
    bool apart;
    struct err why;

    if (!json_is_integer(id))
        return tokenizer_fail(t, E_IO, e, "token \"%.40s\" has no whole number  -> an id", text);
    char *const bytes = token_text(t, text, n, &length, &apart);
    if (!bytes)
        return tokenizer_no_memory(t, e);
    const enum status st = vocab_put(&t->vocab, json_integer_value(id), bytes, length, apart, &why);
    free(bytes);
    return st == OK ? OK : tokenizer_fail(t, st, e, "%s  -> another file", why.msg);
}

/* The smallest tokens: each byte has one. */
static enum status read_bytes(struct tokenizer *t, struct err *e)
{
    char text[8];

    for (int b = 0; b < 256; b++) {
        const int n = snprintf(text, sizeof(text), t->bytes ? "%c" : "<0x%02X>", b);
        t->byte[b] = vocab_find(&t->vocab, text, (size_t)n);
        if (t->byte[b] < 0)
            return tokenizer_fail(t, E_IO, e, "no token for byte 0x%02X  -> a whole vocabulary", b);
    }
    return OK;
}

enum status tokenizer_read_vocab(struct tokenizer *t, json_t *vocab, struct err *e)
{
    const char *text;
    json_t *id;
    enum status st = OK;

    if (!json_is_object(vocab))
        return tokenizer_fail(t, E_IO, e, "no vocabulary  -> a whole file");
    json_object_foreach(vocab, text, id)
    {
        if (st == OK)
            st = tokenizer_put(t, id, text, strlen(text), e);
    }
    if (st == OK)
        st = vocab_index(&t->vocab, e);
    return st == OK ? read_bytes(t, e) : st;
}

static int32_t find(const struct tokenizer *t, const char *text, size_t n)
{
    size_t length;
    bool apart;
    char *const bytes = token_text(t, text, n, &length, &apart);
    const int32_t id = bytes && !apart ? vocab_find(&t->vocab, bytes, length) : -1;

    free(bytes);
    return id;
}

static enum status put_merge(struct tokenizer *t, const char *left, size_t n_left,
                             const char *right, size_t n_right, struct err *e)
{
    const int32_t a = find(t, left, n_left), b = find(t, right, n_right);
    int32_t joint = -1;

    if (a >= 0 && b >= 0) {
        const struct token *const x = &t->vocab.token[a], *const y = &t->vocab.token[b];
        char *const both = malloc(x->n + y->n + 1);
        if (!both)
            return tokenizer_no_memory(t, e);
        memcpy(both, x->text, x->n);
        memcpy(both + x->n, y->text, y->n);
        joint = vocab_find(&t->vocab, both, x->n + y->n);
        free(both);
    }
    if (joint < 0)
        return tokenizer_fail(
            t, E_IO, e, "merge \"%.*s %.*s\" joins what the vocabulary lacks  -> a whole file",
            (int)(n_left < 40 ? n_left : 40), left, (int)(n_right < 40 ? n_right : 40), right);
    merges_put(&t->merges, a, b, joint);
    return OK;
}

/* "a b" */
static enum status put_merge_line(struct tokenizer *t, const char *line, size_t n, struct err *e)
{
    const char *const blank = memchr(line, ' ', n);

    if (!blank)
        return tokenizer_fail(t, E_IO, e, "merge \"%.*s\" is no pair  -> two tokens and a space",
                              (int)(n < 40 ? n : 40), line);
    return put_merge(t, line, (size_t)(blank - line), blank + 1, n - (size_t)(blank - line) - 1, e);
}

static enum status read_merges(struct tokenizer *t, const json_t *merges, struct err *e)
{
    const size_t n = json_array_size(merges);
    enum status st = json_is_array(merges)
                         ? merges_open(&t->merges, n, e)
                         : tokenizer_fail(t, E_IO, e, "no merges  -> a whole file");

    for (size_t i = 0; st == OK && i < n; i++) {
        const json_t *const m = json_array_get(merges, i);
        const char *const line = json_string_value(m);
        const json_t *const a = json_array_get(m, 0), *const b = json_array_get(m, 1);
        if (line)
            st = put_merge_line(t, line, json_string_length(m), e);
        else if (json_array_size(m) == 2 && json_is_string(a) && json_is_string(b))
            st = put_merge(t, json_string_value(a), json_string_length(a), json_string_value(b),
                           json_string_length(b), e);
        else
            st = tokenizer_fail(t, E_IO, e, "merge %zu is no pair  -> a whole file", i);
    }
    return st;
}

static bool is_set(const json_t *j, const char *key)
{
    const json_t *const v = json_object_get(j, key);

    return v && !json_is_null(v) && !json_is_false(v) &&
           *(json_is_string(v) ? json_string_value(v) : "x");
}

/* Does it ask for what is not computed here? */
static enum status check_model(const struct tokenizer *t, const json_t *model, struct err *e)
{
    static const char *const others[] = {"dropout", "continuing_subword_prefix",
                                         "end_of_word_suffix"};
    const char *const type = word_of(model, "type");

    if (*type && strcmp(type, "BPE") != 0)
        return tokenizer_fail(t, E_IO, e, "model %.40s: not supported  -> a BPE tokenizer", type);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (is_set(model, others[i]))
            return tokenizer_fail(t, E_IO, e, "model with %s: not supported  -> one without",
                                  others[i]);
    if (!t->bytes && !flag_of(model, "byte_fallback", false))
        return tokenizer_fail(t, E_IO, e,
                              "model without bytes: not supported  -> ByteLevel or byte_fallback");
    return OK;
}

enum status tokenizer_read_model(struct tokenizer *t, json_t *model, struct err *e)
{
    enum status st = check_model(t, model, e);

    if (st == OK)
        st = tokenizer_read_vocab(t, json_object_get(model, "vocab"), e);
    if (st == OK)
        st = read_merges(t, json_object_get(model, "merges"), e);
    t->whole_first = flag_of(model, "ignore_merges", false);
    t->strips = !t->bytes;
    return st;
}

/* A pair a line, after a line that says the version. */
enum status tokenizer_read_merges(struct tokenizer *t, const struct bytes *text, struct err *e)
{
    const char *const end = text->data + text->n;
    size_t lines = 1;
    const char *next;

    for (const char *at = text->data; at < end; at++)
        lines += *at == '\n';
    enum status st = merges_open(&t->merges, lines, e);
    for (const char *at = text->data; st == OK && at < end; at = next) {
        const char *const stop = memchr(at, '\n', (size_t)(end - at));
        const char *const to = stop ? stop : end;
        next = to + 1;
        const size_t n = (size_t)(to - at) - (to > at && to[-1] == '\r');
        const bool version = at == text->data && n >= 8 && memcmp(at, "#version", 8) == 0;
        if (n > 0 && !version)
            st = put_merge_line(t, at, n, e);
    }
    return st;
}
