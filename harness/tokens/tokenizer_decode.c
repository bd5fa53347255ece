/* SPDX-License-Identifier: MIT
 *
 * Tokens to text: of bytes, and of characters with bytes behind them. Other decoders are known by
 * not being one of these two. */
#include "tokenizer_json.h"

#include "harness/util/text.h"

/* ByteLevel's for bytes; for characters that of Llama 2: spaces, bytes, one space less in front; or
 * that of Gemma, which keeps it. */
bool tokenizer_decodes(const struct tokenizer *t, const json_t *decoder, bool *strips)
{
    static const char *const llama[] = {"Replace", "ByteFallback", "Fuse", "Strip"};
    const json_t *const parts = json_object_get(decoder, "decoders");
    const size_t n = json_array_size(parts);

    *strips = !t->bytes && n == ARRAY_LEN(llama);
    if (t->bytes)
        return strcmp(word_of(decoder, "type"), "ByteLevel") == 0;
    if (strcmp(word_of(decoder, "type"), "Sequence") != 0 ||
        (n != ARRAY_LEN(llama) && n != ARRAY_LEN(llama) - 1))
        return false;
    for (size_t i = 0; i < n; i++)
        if (strcmp(word_of(json_array_get(parts, i), "type"), llama[i]) != 0)
            return false;
    const json_t *const replace = json_array_get(parts, 0), *const strip = json_array_get(parts, 3);
    return strcmp(word_of(json_object_get(replace, "pattern"), "String"), LOWER_BLOCK) == 0 &&
           strcmp(word_of(replace, "content"), " ") == 0 &&
           (!*strips || (strcmp(word_of(strip, "content"), " ") == 0 &&
                         json_integer_value(json_object_get(strip, "start")) == 1 &&
                         json_integer_value(json_object_get(strip, "stop")) == 0));
}

/* The byte that a token of byte fall-back stands for; -1 = another. */
static int byte_of(const struct tokenizer *t, int32_t id)
{
    for (int b = 0; !t->bytes && b < 256; b++)
        if (t->byte[b] == id)
            return b;
    return -1;
}

/* A run of bytes is its characters, or U+FFFD for each byte if it is none. */
static void put_run(FILE *f, const char *run, size_t n)
{
    const bool valid = utf8_valid(run, n) == n;

    for (size_t i = 0; i < n; i++)
        if (valid)
            putc(run[i], f);
        else
            fputs("\xef\xbf\xbd", f);
}

static void put_text(FILE *f, const struct tokenizer *t, int32_t id)
{
    const struct token *const k = &t->vocab.token[id];

    if (t->bytes)
        fwrite(k->text, 1, k->n, f);
    else
        text_replaced(f, k->text, k->n, LOWER_BLOCK, " ");
}

static enum status decode(const struct tokenizer *t, const int32_t *ids, size_t n,
                          struct bytes *out, struct err *e)
{
    char *const run = malloc(n + 1);
    size_t length = 0;
    FILE *const f = run ? bytes_open(out, e) : NULL;

    if (!f) {
        free(run);
        return fail(e, E_NOMEM, "no memory for the text of %zu tokens", n);
    }
    for (size_t i = 0; i < n; i++) {
        CHECK(ids[i] >= 0 && ids[i] < t->vocab.n);
        const int byte = byte_of(t, ids[i]);
        if (byte >= 0) {
            run[length++] = (char)byte;
            continue;
        }
        put_run(f, run, length);
        length = 0;
        put_text(f, t, ids[i]);
    }
    put_run(f, run, length);
    free(run);
    return bytes_close(f, out, e);
}

enum status tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t n,
                             struct bytes *out, struct err *e)
{
    struct bytes raw = {0};

    if (t->lists_words)
        return fail(e, E_UNSUPPORTED, "tokenizer %s: words do not say what lay between them",
                    t->dir);
    if (!t->decodes)
        return fail(e, E_UNSUPPORTED,
                    "tokenizer %s: decoder: not supported  -> a comparison of ids alone", t->dir);
    enum status st = decode(t, ids, n, &raw, e);
    if (st == OK) {
        const size_t skip = t->strips && raw.n > 0 && *raw.data == ' ';
        st = utf8_replace(out, raw.data + skip, raw.n - skip, e);
    }
    free(raw.data);
    return st;
}

enum status tokenizer_show(const struct tokenizer *t, const int32_t *ids, size_t n,
                           struct bytes *out, struct err *e)
{
    return t->lists_words ? tokenizer_join(t, ids, n, out, e) : tokenizer_decode(t, ids, n, out, e);
}
