/* SPDX-License-Identifier: MIT
 *
 * The model of a tokenizer as files write it: a vocabulary with its ids, and merges in their
 * order, checked as they are read. How a text is split and merged is not decided here. */
#include "tokenizer_json.h"

enum status tokenizer_no_memory(const struct tokenizer *t, struct err *e)
{
    return fail(e, E_NOMEM, "tokenizer %s: no memory for its files  -> free some memory", t->dir);
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
        return tokenizer_bad(t, e, "token \"%.40s\" has no whole number  -> give its id", text);
    char *const bytes = token_text(t, text, n, &length, &apart);
    if (!bytes)
        return tokenizer_no_memory(t, e);
    const enum status st = vocab_put(&t->vocab, json_integer_value(id), bytes, length, apart, &why);
    free(bytes);
    return st == OK ? OK : fail(e, st, "tokenizer %s: %s  -> give another file", t->dir, why.msg);
}

int32_t tokenizer_named(const struct tokenizer *t, const char *text)
{
    size_t length;
    bool apart;
    char *const bytes = token_text(t, text, strlen(text), &length, &apart);
    int32_t id = bytes ? 0 : t->vocab.n;

    for (; id < t->vocab.n; id++) {
        const struct token *const k = &t->vocab.token[id];
        if (k->text && k->apart == apart && k->n == length && memcmp(k->text, bytes, length) == 0)
            break;
    }
    free(bytes);
    return id < t->vocab.n ? id : -1;
}

/* The smallest tokens: each byte has one. */
static enum status read_bytes(struct tokenizer *t, struct err *e)
{
    char text[8];

    for (int b = 0; b < 256; b++) {
        const int n = snprintf(text, sizeof(text), t->bytes ? "%c" : "<0x%02X>", b);
        t->byte[b] = vocab_find(&t->vocab, text, (size_t)n);
        if (t->byte[b] < 0)
            return tokenizer_bad(t, e, "no token for byte 0x%02X  -> give a whole vocabulary", b);
    }
    return OK;
}

enum status tokenizer_read_vocab(struct tokenizer *t, json_t *vocab, struct err *e)
{
    const char *text;
    json_t *id;

    if (!json_is_object(vocab))
        return tokenizer_bad(t, e, "no vocabulary  -> give a whole file");
    json_object_foreach(vocab, text, id) { TRY(tokenizer_put(t, id, text, strlen(text), e)); }
    TRY(vocab_index(&t->vocab, e));
    return read_bytes(t, e);
}

/* <0xNN> */
static bool is_byte_name(const struct token *k)
{
    return k->n == 6 && memcmp(k->text, "<0x", 3) == 0 && k->text[5] == '>';
}

/* As much of a text as a message shows. */
static int shown(size_t n) { return n < 40 ? (int)n : 40; }

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
        return tokenizer_bad(
            t, e,
            "merge \"%.*s %.*s\" joins tokens that the vocabulary lacks  -> give a whole file",
            shown(n_left), left, shown(n_right), right);
    if (merges_has(&t->merges, a, b)) /* programs differ in which of the two counts */
        return tokenizer_bad(t, e, "merge \"%.*s %.*s\" stands twice  -> once", shown(n_left), left,
                             shown(n_right), right);
    t->vocab.token[joint].made = true;
    merges_put(&t->merges, (struct merge){a, b, t->merges.n, joint});
    return OK;
}

/* "a b" */
static enum status put_merge_line(struct tokenizer *t, const char *line, size_t n, struct err *e)
{
    const char *const blank = memchr(line, ' ', n);
    const bool version = n >= 8 && memcmp(line, "#version", 8) == 0; /* no merge to the library */

    if (!blank || version || memchr(blank + 1, ' ', n - (size_t)(blank - line) - 1))
        return tokenizer_bad(
            t, e, "merge \"%.*s\" is not a pair  -> write two tokens with a space between",
            shown(n), line);
    return put_merge(t, line, (size_t)(blank - line), blank + 1, n - (size_t)(blank - line) - 1, e);
}

static enum status read_merges(struct tokenizer *t, const json_t *merges, struct err *e)
{
    const size_t n = json_array_size(merges);

    TRY(json_is_array(merges) ? merges_open(&t->merges, n, e)
                              : tokenizer_bad(t, e, "no merges  -> give a whole file"));

    for (size_t i = 0; i < n; i++) {
        const json_t *const m = json_array_get(merges, i);
        const char *const line = json_string_value(m);
        const json_t *const a = json_array_get(m, 0), *const b = json_array_get(m, 1);
        if (line)
            TRY(put_merge_line(t, line, json_string_length(m), e));
        else if (json_array_size(m) == 2 && json_is_string(a) && json_is_string(b))
            TRY(put_merge(t, json_string_value(a), json_string_length(a), json_string_value(b),
                          json_string_length(b), e));
        else
            return tokenizer_bad(t, e, "merge %zu is not a pair  -> give a whole file", i);
    }
    return OK;
}

/* Most words of several characters are made by a merge: files whose merges broke off would split
 * them into bytes, which is a score, too. Some words are added by hand. */
static enum status check_made(const struct tokenizer *t, struct err *e)
{
    int made = 0, unmade = 0;

    for (int id = 0; id < t->vocab.n; id++) {
        const struct token *const k = &t->vocab.token[id];
        size_t first = 1;
        if (!k->text || k->apart || k->n == 0 || (!t->bytes && is_byte_name(k)))
            continue;
        if (!t->bytes)
            utf8_next(k->text, k->n, &first);
        made += k->n > first && k->made;
        unmade += k->n > first && !k->made;
    }
    return unmade <= 8 + made / 8 ? OK
                                  : tokenizer_bad(t, e,
                                                  "merges make only %d of %d words of the "
                                                  "vocabulary: they broke off  -> a whole file",
                                                  made, made + unmade);
}

/* Does it ask for what is not computed here? */
static enum status check_model(const struct tokenizer *t, const json_t *model, struct err *e)
{
    static const struct key keys[] = {
        {"type", MAY_TEXT},
        {"dropout", MAY_NUMBER | MAY_NULL},
        {"unk_token", MAY_TEXT | MAY_NULL}, /* all bytes have tokens: none is unknown */
        {"continuing_subword_prefix", MAY_TEXT | MAY_NULL},
        {"end_of_word_suffix", MAY_TEXT | MAY_NULL},
        {"fuse_unk", MAY_FLAG | MAY_NULL},
        {"byte_fallback", MAY_FLAG | MAY_NULL},
        {"ignore_merges", MAY_FLAG | MAY_NULL},
        {"vocab", MAY_ANY}, /* looked at below */
        {"merges", MAY_ANY},
    };
    static const char *const off[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix"};
    const char *const type = word_of(model, "type");

    if (*type && strcmp(type, "BPE") != 0)
        return tokenizer_bad(t, e, "model %.40s: not supported  -> use a BPE tokenizer", type);
    TRY(tokenizer_keys(t, "model", model, keys, ARRAY_LEN(keys), e));
    for (size_t i = 0; i < ARRAY_LEN(off); i++)
        if (json_number_value(json_object_get(model, off[i])) != 0 || *word_of(model, off[i]))
            return tokenizer_bad(t, e, "model with %s: not supported  -> use one without", off[i]);
    if (!t->bytes && !flag_of(model, "byte_fallback", false))
        return tokenizer_bad(
            t, e, "model without bytes: not supported  -> use one with ByteLevel or byte_fallback");
    return OK;
}

enum status tokenizer_read_model(struct tokenizer *t, json_t *model, const json_t *scores,
                                 struct err *e)
{
    TRY(check_model(t, model, e));
    TRY(tokenizer_read_vocab(t, json_object_get(model, "vocab"), e));
    TRY(scores ? tokenizer_read_scores(t, scores, e)
               : read_merges(t, json_object_get(model, "merges"), e));
    t->whole_first = flag_of(model, "ignore_merges", false);
    return t->whole_first ? OK : check_made(t, e);
}

/* A pair a line, after a line that says the version. */
enum status tokenizer_read_merges(struct tokenizer *t, const struct bytes *text, struct err *e)
{
    const char *const end = text->data + text->n;
    size_t lines = 1;
    const char *next;

    for (const char *at = text->data; at < end; at++)
        lines += *at == '\n';
    TRY(merges_open(&t->merges, lines, e));
    for (const char *at = text->data; at < end; at = next) {
        const char *const stop = memchr(at, '\n', (size_t)(end - at));
        const char *const to = stop ? stop : end;
        next = to + 1;
        const size_t n = (size_t)(to - at) - (to > at && to[-1] == '\r');
        const bool version = at == text->data && n >= 8 && memcmp(at, "#version", 8) == 0;
        if (n > 0 && !version)
            TRY(put_merge_line(t, at, n, e));
    }
    return check_made(t, e);
}
