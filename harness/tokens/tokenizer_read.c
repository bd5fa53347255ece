/* SPDX-License-Identifier: MIT
 *
 * Reading tokenizer.json, or vocab.json and merges.txt, which is gpt2's form. What these files may
 * ask for and is not here is refused by name: a tokenizer that is nearly right gives numbers that
 * are nearly right. */
#include "tokenizer_json.h"

#include "variants/base/json_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOWER_BLOCK "\xe2\x96\x81" /* U+2581, which stands for a space */

/* *out is the caller's, whatever the status. */
static enum status read_object(const struct tokenizer *t, const char *name, json_t **out,
                               struct err *e)
{
    struct bytes text = {0};
    json_error_t why = {0};
    const enum status st = tokenizer_file(t, name, &text, e);

    if (st != OK)
        return st;
    *out = json_read(text.data, text.n, JSON_REJECT_DUPLICATES, &why);
    const bool starved = !*out && errno == ENOMEM;
    free(text.data);
    if (starved)
        return tokenizer_no_memory(t, e);
    return json_is_object(*out)
               ? OK
               : tokenizer_fail(t, E_IO, e, "%s is no JSON object (byte %d %s)  -> a whole file",
                                name, why.position, why.text);
}

/* The parts of a sequence in order, or the one thing that it is instead; NULL at the end. */
static const json_t *part(const json_t *j, const char *list, size_t i)
{
    if (strcmp(word_of(j, "type"), "Sequence") == 0)
        return json_array_get(json_object_get(j, list), i);
    return i == 0 && j && !json_is_null(j) ? j : NULL;
}

/* ---- normalizers -------------------------------------------------------------------------- */

static enum status read_normalizer(struct tokenizer *t, const json_t *j, struct err *e)
{
    const char *const type = word_of(j, "type");
    struct normalizer *const next = &t->normalizer[t->n_normalizers];

    const char *const from = word_of(json_object_get(j, "pattern"), "String");
    const bool composes = strcmp(type, "NFC") == 0, prepends = strcmp(type, "Prepend") == 0;
    if (!composes && !prepends && (strcmp(type, "Replace") != 0 || !*from))
        return tokenizer_fail(
            t, E_IO, e,
            "normalizer %.40s: not supported  -> NFC, Prepend, Replace of a text, "
            "or none",
            type);
    if (t->n_normalizers == MAX_NORMALIZERS)
        return tokenizer_fail(t, E_IO, e, "more than %d normalizers: not supported",
                              MAX_NORMALIZERS);
    next->kind = composes ? NORMALIZE_NFC : prepends ? NORMALIZE_PREPEND : NORMALIZE_REPLACE;
    next->from = strdup(from);
    next->to = strdup(word_of(j, prepends ? "prepend" : "content"));
    t->n_normalizers++;
    return next->from && next->to ? OK : tokenizer_no_memory(t, e);
}

static enum status read_normalizers(struct tokenizer *t, const json_t *j, struct err *e)
{
    const json_t *one;
    enum status st = OK;

    for (size_t i = 0; st == OK && (one = part(j, "normalizers", i)); i++)
        st = read_normalizer(t, one, e);
    return st;
}

/* ---- words -------------------------------------------------------------------------------- */

static enum status unknown_words(const struct tokenizer *t, const json_t *j, struct err *e)
{
    const char *const pattern = word_of(json_object_get(j, "pattern"), "Regex");

    return tokenizer_fail(t, E_IO, e,
                          "pre_tokenizer %.40s%s%.80s%s is not one of the known patterns  -> those "
                          "of gpt2, Pythia, SmolLM2, Llama and Qwen",
                          word_of(j, "type"), *pattern ? " \"" : "", pattern, *pattern ? "\"" : "");
}

/* ByteLevel: words by gpt2's pattern, unless something before it has cut them. */
static enum status read_byte_level(struct tokenizer *t, const json_t *j, struct err *e)
{
    const bool cuts = flag_of(j, "use_regex", true);

    t->bytes = true;
    if (cuts && t->words != WORDS_WHOLE && t->words != WORDS_DIGITS)
        return unknown_words(t, j, e);
    if (cuts && t->words == WORDS_WHOLE)
        t->words = WORDS_GPT2;
    if (!cuts && t->words == WORDS_DIGITS)
        return unknown_words(t, j, e);
    if (flag_of(j, "add_prefix_space", true)) {
        if (t->words == WORDS_DIGITS) /* each of its pieces would have one */
            return unknown_words(t, j, e);
        t->blank = BLANK_EACH;
    }
    return OK;
}

static enum status read_metaspace(struct tokenizer *t, const json_t *j, struct err *e)
{
    const bool old = flag_of(j, "add_prefix_space", true);
    const char *const scheme = json_object_get(j, "prepend_scheme") ? word_of(j, "prepend_scheme")
                               : old                                ? "always"
                                                                    : "never";
    struct normalizer *const blanks = &t->normalizer[t->n_normalizers];

    if (strcmp(word_of(j, "replacement"), LOWER_BLOCK) != 0 || flag_of(j, "split", true) ||
        t->n_normalizers == MAX_NORMALIZERS)
        return unknown_words(t, j, e);
    if (strcmp(scheme, "first") == 0)
        t->blank = BLANK_FIRST;
    else if (strcmp(scheme, "always") == 0)
        t->blank = BLANK_EACH;
    else if (strcmp(scheme, "never") != 0)
        return unknown_words(t, j, e);
    t->blank_text = LOWER_BLOCK;
    *blanks = (struct normalizer){NORMALIZE_REPLACE, strdup(" "), strdup(LOWER_BLOCK)};
    t->n_normalizers++;
    return blanks->from && blanks->to ? OK : tokenizer_no_memory(t, e);
}

static enum status read_cutter(struct tokenizer *t, const json_t *j, struct err *e)
{
    const char *const type = word_of(j, "type");

    if (t->bytes || *t->blank_text != ' ') /* these end a sequence */
        return unknown_words(t, j, e);
    if (strcmp(type, "ByteLevel") == 0)
        return read_byte_level(t, j, e);
    if (strcmp(type, "Metaspace") == 0 && t->words == WORDS_WHOLE)
        return read_metaspace(t, j, e);
    if (strcmp(type, "Digits") == 0 && flag_of(j, "individual_digits", false) &&
        t->words == WORDS_WHOLE) {
        t->words = WORDS_DIGITS;
        return OK;
    }
    const bool cuts = strcmp(type, "Split") == 0 && t->words == WORDS_WHOLE &&
                      strcmp(word_of(j, "behavior"), "Isolated") == 0 &&
                      !flag_of(j, "invert", false);
    return cuts && words_of_pattern(word_of(json_object_get(j, "pattern"), "Regex"), &t->words)
               ? OK
               : unknown_words(t, j, e);
}

static enum status read_cutters(struct tokenizer *t, const json_t *j, struct err *e)
{
    const json_t *one;
    enum status st = OK;

    for (size_t i = 0; st == OK && (one = part(j, "pretokenizers", i)); i++)
        st = read_cutter(t, one, e);
    if (st == OK && t->words != WORDS_WHOLE && !t->bytes)
        return unknown_words(t, j, e);
    return st;
}

/* ---- added tokens ------------------------------------------------------------------------- */

static enum status add_cut(struct tokenizer *t, struct cuts *to, bool normal, const char *text,
                           size_t n, int32_t id, struct err *e)
{
    struct cut *const grown = realloc(to->v, (size_t)(to->n + 1) * sizeof(*grown));
    struct bytes made = {0};

    if (!grown)
        return tokenizer_no_memory(t, e);
    to->v = grown;
    if (normal) {
        const enum status st = tokenizer_normalize(t, text, n, &made, e);
        if (st != OK)
            return st;
    } else {
        made.data = strndup(text, n);
        made.n = n;
    }
    if (!made.data)
        return tokenizer_no_memory(t, e);
    to->v[to->n++] = (struct cut){made, id};
    return OK;
}

static enum status read_added(struct tokenizer *t, const json_t *j, struct err *e)
{
    const json_t *const content = json_object_get(j, "content"), *const id =
                                                                     json_object_get(j, "id");
    const char *const text = word_of(j, "content");
    const size_t n = json_string_length(content);
    const bool normal = flag_of(j, "normalized", true);

    if (n == 0)
        return tokenizer_fail(t, E_IO, e, "an added token without a text  -> a whole file");
    if (flag_of(j, "lstrip", false) || flag_of(j, "rstrip", false) ||
        flag_of(j, "single_word", false))
        return tokenizer_fail(
            t, E_IO, e, "added token \"%.40s\" with lstrip, rstrip or single_word: not supported",
            text);
    const enum status st = tokenizer_put(t, id, text, n, e);
    return st == OK ? add_cut(t, normal ? &t->after : &t->before, normal, text, n,
                              (int32_t)json_integer_value(id), e)
                    : st;
}

/* By first byte, then the longest first, then as the file has them. */
static int by_first(const void *a, const void *b)
{
    const struct cut *const x = a, *const y = b;
    const int one = (unsigned char)*x->text.data, other = (unsigned char)*y->text.data;

    return one != other             ? one - other
           : x->text.n != y->text.n ? (x->text.n < y->text.n) - (x->text.n > y->text.n)
                                    : (x->id > y->id) - (x->id < y->id);
}

static void sort_cuts(struct cuts *c)
{
    int i = 0;

    if (c->n > 0)
        qsort(c->v, (size_t)c->n, sizeof(*c->v), by_first);
    for (int b = 0; b < 256; b++) {
        c->first[b] = i;
        while (i < c->n && (unsigned char)*c->v[i].text.data == b)
            i++;
    }
    c->first[256] = i;
}

static enum status read_all_added(struct tokenizer *t, const json_t *list, struct err *e)
{
    enum status st = OK;

    for (size_t i = 0; st == OK && i < json_array_size(list); i++)
        st = read_added(t, json_array_get(list, i), e);
    sort_cuts(&t->before);
    sort_cuts(&t->after);
    return st;
}

/* ---- what stands in front ----------------------------------------------------------------- */

static enum status read_template(struct tokenizer *t, const json_t *j, struct err *e)
{
    const json_t *const parts = json_object_get(j, "single");

    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *const part = json_array_get(parts, i);
        const char *const name = word_of(json_object_get(part, "SpecialToken"), "id");
        const json_t *const ids =
            json_object_get(json_object_get(json_object_get(j, "special_tokens"), name), "ids");
        if (json_object_get(part, "Sequence"))
            return i + 1 == json_array_size(parts)
                       ? OK
                       : tokenizer_fail(t, E_IO, e,
                                        "post_processor with tokens behind the text: "
                                        "not supported");
        for (size_t k = 0; k < json_array_size(ids); k++) {
            const json_int_t id = json_integer_value(json_array_get(ids, k));
            if (id < 0 || id >= t->vocab.n || t->n_prefix == MAX_PREFIX)
                return tokenizer_fail(t, E_IO, e,
                                      "post_processor with \"%.40s\" in front: no such "
                                      "token, or too many",
                                      name);
            t->prefix[t->n_prefix++] = (int32_t)id;
        }
    }
    return OK;
}

static enum status read_post(struct tokenizer *t, const json_t *j, struct err *e)
{
    const json_t *one;
    enum status st = OK;

    for (size_t i = 0; st == OK && (one = part(j, "processors", i)); i++) {
        const char *const type = word_of(one, "type");
        if (strcmp(type, "TemplateProcessing") == 0)
            st = read_template(t, one, e);
        else if (strcmp(type, "ByteLevel") != 0)
            st = tokenizer_fail(t, E_IO, e, "post_processor %.40s: not supported", type);
    }
    return st;
}

/* ---- files -------------------------------------------------------------------------------- */

enum status tokenizer_read_json(struct tokenizer *t, struct err *e)
{
    json_t *all = NULL;
    enum status st = unicode_ready(e);

    if (st == OK)
        st = read_object(t, "tokenizer.json", &all, e);
    if (st == OK)
        st = read_normalizers(t, json_object_get(all, "normalizer"), e);
    if (st == OK)
        st = read_cutters(t, json_object_get(all, "pre_tokenizer"), e);
    if (st == OK)
        st = tokenizer_read_model(t, json_object_get(all, "model"), e);
    if (st == OK)
        st = read_all_added(t, json_object_get(all, "added_tokens"), e);
    if (st == OK)
        st = read_post(t, json_object_get(all, "post_processor"), e);
    json_decref(all);
    return st;
}

/* gpt2's text end is cut out wherever it has a token for it. */
static enum status add_text_end(struct tokenizer *t, struct err *e)
{
    static const char end[] = "<|endoftext|>";
    const int32_t id = vocab_find(&t->vocab, end, sizeof(end) - 1);
    const enum status st = id < 0 ? OK : add_cut(t, &t->before, false, end, sizeof(end) - 1, id, e);

    sort_cuts(&t->before);
    return st;
}

enum status tokenizer_read_pair(struct tokenizer *t, struct err *e)
{
    struct bytes merges = {0};
    json_t *vocab = NULL;
    enum status st = unicode_ready(e);

    t->bytes = true;
    t->words = WORDS_GPT2;
    if (st == OK)
        st = read_object(t, "vocab.json", &vocab, e);
    if (st == OK)
        st = tokenizer_read_vocab(t, vocab, e);
    if (st == OK)
        st = tokenizer_file(t, "merges.txt", &merges, e);
    if (st == OK && utf8_valid(merges.data, merges.n) < merges.n)
        st = tokenizer_fail(t, E_IO, e, "merges.txt is not UTF-8  -> a whole file");
    if (st == OK)
        st = tokenizer_read_merges(t, &merges, e);
    if (st == OK)
        st = add_text_end(t, e);
    free(merges.data);
    json_decref(vocab);
    return st;
}
