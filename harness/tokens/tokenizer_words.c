/* SPDX-License-Identifier: MIT
 *
 * Lists of words, as of WikiText-103: Merity et al. 2016, "Pointer Sentinel Mixture Models". A text
 * is its words and an <eos> at the end of each line; <unk> stands for those that the list lacks. */
#include "tokenizer_inner.h"

/* A word a line. */
static enum status put_lines(struct tokenizer *t, const struct bytes *text, struct err *e)
{
    const char *const end = text->data + text->n;
    int64_t id = 0;
    struct err why;

    if (utf8_valid(text->data, text->n) < text->n)
        return tokenizer_bad(t, e, "vocab.txt is not UTF-8  -> write one word a line, in UTF-8");
    for (const char *at = text->data, *next; at < end; at = next, id++) {
        const char *const stop = memchr(at, '\n', (size_t)(end - at));
        const char *const to = stop ? stop : end;
        next = to + 1;
        const enum status st = vocab_put(&t->vocab, id, at, (size_t)(to - at), false, &why);
        if (st != OK)
            return fail(e, st, "tokenizer %s: %s  -> give a shorter list", t->dir, why.msg);
    }
    return OK;
}

enum status tokenizer_read_words(struct tokenizer *t, struct err *e)
{
    struct bytes text = {0};

    TRY(tokenizer_file(t, "vocab.txt", &text, e));
    const enum status st = put_lines(t, &text, e);
    free(text.data);
    TRY(st);
    TRY(vocab_index(&t->vocab, e));
    t->lists_words = true;
    t->eos = vocab_find(&t->vocab, "<eos>", 5);
    t->unk = vocab_find(&t->vocab, "<unk>", 5);
    return t->eos >= 0 ? OK : tokenizer_bad(t, e, "vocab.txt has no <eos>  -> give a whole list");
}

static enum status put_word(const struct tokenizer *t, const char *word, size_t n, struct ids *out,
                            struct err *e)
{
    const int32_t found = vocab_find(&t->vocab, word, n), id = found >= 0 ? found : t->unk;

    if (id < 0)
        return tokenizer_bad(
            t, e, "\"%.*s\" is not in the vocabulary, and \"<unk>\" neither  -> give another text",
            (int)(n < 40 ? n : 40), word);
    out->unknown += found < 0;
    return ids_append(out, id, e);
}

enum status tokenizer_words(const struct tokenizer *t, const char *text, size_t n, struct ids *out,
                            struct err *e)
{
    const char *const end = text + n, *word = text;
    bool inside = false; /* of a word, which begins at `word` */
    size_t length;

    for (const char *at = text; at < end; at += length) {
        const int32_t c = utf8_next(at, (size_t)(end - at), &length);
        const bool ends = c == '\n' || c == '\r';
        if (!is_white_or_separates(c)) {
            word = inside ? word : at;
            inside = true;
            continue;
        }
        if (inside)
            TRY(put_word(t, word, (size_t)(at - word), out, e));
        inside = false;
        if (c == '\r' && at + 1 < end && at[1] == '\n')
            length = 2;
        if (ends)
            TRY(ids_append(out, t->eos, e));
    }
    if (inside)
        TRY(put_word(t, word, (size_t)(end - word), out, e));
    if (n > 0 && end[-1] != '\n' && end[-1] != '\r')
        TRY(ids_append(out, t->eos, e));
    return OK;
}

enum status tokenizer_join(const struct tokenizer *t, const int32_t *ids, size_t n,
                           struct bytes *out, struct err *e)
{
    FILE *const f = bytes_open(out, e);
    bool inside = false; /* of a line */

    if (!f)
        return E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const struct token *const word = &t->vocab.token[ids[i]];
        if (ids[i] == t->eos) {
            putc('\n', f);
            inside = false;
            continue;
        }
        if (inside)
            putc(' ', f);
        fwrite(word->text, 1, word->n, f);
        inside = true;
    }
    return bytes_close(f, out, e);
}
