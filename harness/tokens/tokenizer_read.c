/* SPDX-License-Identifier: MIT
 *
 * Reads tokenizer.json, or vocab.json and merges.txt, the form of gpt2. A feature of these files
 * that is not implemented is refused by name: a tokenizer that is nearly right gives numbers that
 * are nearly right. */
#include "tokenizer_json.h"

#include "harness/util/grow.h"
#include "variants/base/gguf.h"

/* ---- normalizers -------------------------------------------------------------------------- */

/* What Replace replaces: a text, also one that is written as an expression; "" for others. */
static const char *replaced_text(const json_t *j)
{
    const json_t *const pattern = json_object_get(j, "pattern");
    const char *const text = word_of(pattern, "String"), *const regex = word_of(pattern, "Regex");

    return *text ? text : strpbrk(regex, "\\^$.|?*+()[]{}") ? "" : regex;
}

static enum status check_normalizer(const struct tokenizer *t, const json_t *j, struct err *e)
{
    static const struct {
        const char *type;
        struct key keys[3];
        size_t n;
    } kinds[] = {
        {"NFC", {{"type", MAY_TEXT}}, 1},
        {"Prepend", {{"type", MAY_TEXT}, {"prepend", MAY_TEXT}}, 2},
        {"Replace", {{"type", MAY_TEXT}, {"pattern", MAY_OBJECT}, {"content", MAY_TEXT}}, 3},
    };
    const char *const type = word_of(j, "type");
    const json_t *const pattern = json_object_get(j, "pattern");
    const bool good =
        strcmp(type, "Replace") != 0 || (json_object_size(pattern) == 1 && *replaced_text(j));

    if (strcmp(type, "Prepend") == 0 &&
        !*word_of(j, "prepend")) /* the library doubles a character */
        return tokenizer_bad(t, e, "normalizer Prepend of no text: not supported");
    for (size_t i = 0; good && i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].type, type) == 0)
            return tokenizer_keys(t, "normalizer", j, kinds[i].keys, kinds[i].n, e);
    return tokenizer_bad(
        t, e, "normalizer %.40s: not supported  -> use NFC, Prepend, Replace of a text, or none",
        type);
}

static enum status read_normalizer(struct tokenizer *t, const json_t *j, struct err *e)
{
    const char *const type = word_of(j, "type");
    const bool composes = strcmp(type, "NFC") == 0, prepends = strcmp(type, "Prepend") == 0;
    struct normalizer *const next = &t->normalizer[t->n_normalizers];

    TRY(check_normalizer(t, j, e));
    if (t->n_normalizers == MAX_NORMALIZERS)
        return tokenizer_bad(t, e, "more than %d normalizers: not supported", MAX_NORMALIZERS);
    next->kind = composes ? NORMALIZE_NFC : prepends ? NORMALIZE_PREPEND : NORMALIZE_REPLACE;
    next->from = need_text("%s", replaced_text(j));
    next->to = need_text("%s", word_of(j, prepends ? "prepend" : "content"));
    t->n_normalizers++;
    return OK;
}

/* ---- added tokens ------------------------------------------------------------------------- */

/* `how` is what the file says of it. */
static enum status add_cut(struct tokenizer *t, struct cuts *to, bool normal, const char *text,
                           size_t n, int32_t id, const json_t *how, struct err *e)
{
    struct bytes made = {0};

    TRY(GROW(to->v, to->n, e));
    if (normal) {
        TRY(tokenizer_normalize(t, text, n, &made, e));
    } else {
        made.data = strndup(text, n);
        made.n = n;
    }
    if (!made.data)
        return tokenizer_no_memory(t, e);
    if (made.n == 0) {
        free(made.data);
        return tokenizer_bad(t, e, "normalizer leaves nothing of added token \"%.40s\"", text);
    }
    t->renames = t->renames || made.n != n || memcmp(made.data, text, n) != 0;
    to->v[to->n++] = (struct cut){.text = made,
                                  .id = id,
                                  .lstrip = flag_of(how, "lstrip", false),
                                  .rstrip = flag_of(how, "rstrip", false),
                                  .single_word = flag_of(how, "single_word", false)};
    return OK;
}

/* The library gives an added token the id that the vocabulary has for its text, else the next one
 * behind the vocabulary, whatever the file says: that must be the same. */
static enum status check_id(const struct tokenizer *t, const json_t *j, const json_t *vocab,
                            json_int_t *next, struct err *e)
{
    const char *const text = word_of(j, "content");
    const json_t *const known = json_object_get(vocab, text), *const id = json_object_get(j, "id");
    const json_int_t want = known ? json_integer_value(known) : (*next)++;

    if (!json_is_integer(id))
        return tokenizer_bad(t, e, "added token \"%.40s\" has no whole number  -> an id", text);
    if (json_integer_value(id) == want)
        return OK;
    return tokenizer_bad(t, e, "added token \"%.40s\" has id %lld, but %s %lld  -> a whole file",
                         text, (long long)json_integer_value(id),
                         known ? "the vocabulary has that text as" : "the vocabulary ends before",
                         (long long)want);
}

static enum status check_added(const struct tokenizer *t, const json_t *j, struct err *e)
{
    static const struct key keys[] = {{"id", MAY_NUMBER},        {"content", MAY_TEXT},
                                      {"single_word", MAY_FLAG}, {"lstrip", MAY_FLAG},
                                      {"rstrip", MAY_FLAG},      {"normalized", MAY_FLAG},
                                      {"special", MAY_FLAG}};

    TRY(tokenizer_keys(t, "an added token", j, keys, ARRAY_LEN(keys), e));
    return *word_of(j, "content")
               ? OK
               : tokenizer_bad(t, e, "an added token without a text  -> give a whole file");
}

static enum status read_added(struct tokenizer *t, const json_t *j, const json_t *vocab,
                              json_int_t *next, struct err *e)
{
    const json_t *const id = json_object_get(j, "id");
    const char *const text = word_of(j, "content");
    const bool normal = flag_of(j, "normalized", true);

    TRY(check_added(t, j, e));
    TRY(check_id(t, j, vocab, next, e));
    TRY(tokenizer_put(t, id, text, strlen(text), e));
    return add_cut(t, normal ? &t->after : &t->before, normal, text, strlen(text),
                   (int32_t)json_integer_value(id), j, e);
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

static enum status sort_cuts(struct tokenizer *t, struct cuts *c, struct err *e)
{
    int i = 0;

    if (c->n > 0)
        qsort(c->v, (size_t)c->n, sizeof(*c->v), by_first);
    for (int k = 0; k + 1 < c->n; k++)
        if (c->v[k].text.n == c->v[k + 1].text.n &&
            memcmp(c->v[k].text.data, c->v[k + 1].text.data, c->v[k].text.n) == 0)
            return tokenizer_bad(t, e, "added token \"%.40s\": its normal form is that of another",
                                 t->vocab.token[c->v[k].id].text);
    for (int b = 0; b < 256; b++) {
        c->first[b] = i;
        while (i < c->n && (unsigned char)*c->v[i].text.data == b)
            i++;
    }
    c->first[256] = i;
    return OK;
}

static enum status read_all_added(struct tokenizer *t, const json_t *list, const json_t *vocab,
                                  struct err *e)
{
    json_int_t next = (json_int_t)json_object_size(vocab);

    t->added = json_object();
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *const one = json_array_get(list, i);
        const char *const text = word_of(one, "content");
        if (json_object_get(t->added, text))
            return tokenizer_bad(t, e, "added token \"%.40s\" stands twice  -> once", text);
        TRY(read_added(t, one, vocab, &next, e));
        json_object_set(t->added, text, one);
    }
    TRY(sort_cuts(t, &t->before, e));
    return sort_cuts(t, &t->after, e);
}

/* ---- files -------------------------------------------------------------------------------- */

/* A length that texts are cut or filled to is none of a model. */
static enum status check_lengths(const struct tokenizer *t, const json_t *all, struct err *e)
{
    static const char *const names[] = {"truncation", "padding"};
    const json_t *const padding = json_object_get(all, "padding");
    const json_t *const multiple = json_object_get(padding, "pad_to_multiple_of");
    const bool to_longest = strcmp(word_of(padding, "strategy"), "BatchLongest") == 0 &&
                            (!multiple || json_is_null(multiple));

    for (int i = 0; i < 2; i++) {
        const json_t *const value = json_object_get(all, names[i]);
        if (value && !json_is_null(value) && !(i == 1 && to_longest))
            return tokenizer_bad(t, e, "%s is set: not supported  -> null in tokenizer.json",
                                 names[i]);
    }
    return OK;
}

static enum status check_all(const struct tokenizer *t, const json_t *all, struct err *e)
{
    static const struct key keys[] = {{"version", MAY_TEXT},
                                      {"truncation", MAY_OBJECT | MAY_NULL},
                                      {"padding", MAY_OBJECT | MAY_NULL},
                                      {"added_tokens", MAY_LIST},
                                      {"normalizer", MAY_OBJECT | MAY_NULL},
                                      {"pre_tokenizer", MAY_OBJECT | MAY_NULL},
                                      {"post_processor", MAY_OBJECT | MAY_NULL},
                                      {"decoder", MAY_OBJECT | MAY_NULL},
                                      {"model", MAY_OBJECT}};
    TRY(tokenizer_keys(t, "tokenizer.json", all, keys, ARRAY_LEN(keys), e));
    const char *const version = word_of(all, "version");

    if (*version && strcmp(version, "1.0") != 0)
        return tokenizer_bad(t, e, "version \"%.20s\": not supported  -> 1.0", version);
    return check_lengths(t, all, e);
}

static enum status read_parts(struct tokenizer *t, const json_t *all, const json_t *scores,
                              struct err *e)
{
    json_t *const model = json_object_get(all, "model");

    TRY(check_all(t, all, e));
    TRY(tokenizer_parts(t, "normalizer", json_object_get(all, "normalizer"), "normalizers",
                        read_normalizer, e));
    TRY(tokenizer_parts(t, "pre_tokenizer", json_object_get(all, "pre_tokenizer"), "pretokenizers",
                        tokenizer_read_cutter, e));
    TRY(tokenizer_read_model(t, model, scores, e));
    TRY(read_all_added(t, json_object_get(all, "added_tokens"), json_object_get(model, "vocab"),
                       e));
    TRY(tokenizer_parts(t, "post_processor", json_object_get(all, "post_processor"), "processors",
                        tokenizer_read_processor, e));
    t->decodes = tokenizer_decodes(t, json_object_get(all, "decoder"), &t->strips) && !t->renames;
    return OK;
}

enum status tokenizer_read_json(struct tokenizer *t, struct err *e)
{
    json_t *all = NULL, *scores = NULL;
    enum status st = gguf_is(t->dir) ? tokenizer_gguf(t, &all, &scores, e)
                                     : tokenizer_object(t, "tokenizer.json", &all, e);

    if (st == OK)
        st = read_parts(t, all, scores, e);
    json_decref(all);
    json_decref(scores);
    return st;
}

/* gpt2's text end is cut out wherever it has a token for it. */
static enum status add_text_end(struct tokenizer *t, struct err *e)
{
    static const char end[] = "<|endoftext|>";
    const int32_t id = vocab_find(&t->vocab, end, sizeof(end) - 1);

    t->added = json_object();
    if (id >= 0)
        json_object_set_new(t->added, end, json_true());
    TRY(id < 0 ? OK : add_cut(t, &t->before, false, end, sizeof(end) - 1, id, NULL, e));
    return sort_cuts(t, &t->before, e);
}

/* These two files say nothing of words, normal forms and added tokens: whose rules are meant is
 * what the files beside them say of the model. */
static enum status check_pair_is_gpt2(const struct tokenizer *t, struct err *e)
{
    static const struct {
        const char *file, *key, *good[3];
    } says[] = {
        {"config.json", "model_type", {"gpt2"}},
        {"tokenizer_config.json", "tokenizer_class", {"GPT2Tokenizer", "GPT2TokenizerFast"}}};

    for (size_t i = 0; i < ARRAY_LEN(says); i++) {
        json_t *j = NULL;
        if (!tokenizer_has(t, says[i].file))
            continue;
        TRY(tokenizer_object(t, says[i].file, &j, e));
        const char *const is = word_of(j, says[i].key);
        bool good = !*is;
        for (int k = 0; says[i].good[k]; k++)
            good = good || strcmp(is, says[i].good[k]) == 0;
        const enum status st =
            good ? OK
                 : tokenizer_bad(t, e,
                                 "vocab.json and merges.txt alone have gpt2's rules, and the %s is "
                                 "%.40s  -> its tokenizer.json",
                                 says[i].key, is);
        json_decref(j);
        TRY(st);
    }
    return OK;
}

static enum status read_pair_vocab(struct tokenizer *t, struct err *e)
{
    json_t *vocab = NULL;
    enum status st = tokenizer_object(t, "vocab.json", &vocab, e);

    if (st == OK)
        st = tokenizer_read_vocab(t, vocab, e);
    json_decref(vocab);
    return st;
}

enum status tokenizer_read_pair(struct tokenizer *t, struct err *e)
{
    struct bytes merges = {0};

    t->bytes = t->decodes = true;
    TRY(words_open(&t->cutter[t->n_cutters++].words, WORDS_GPT2, false, e));
    TRY(check_pair_is_gpt2(t, e));
    TRY(read_pair_vocab(t, e));
    TRY(tokenizer_file(t, "merges.txt", &merges, e));
    const enum status st =
        utf8_valid(merges.data, merges.n) < merges.n
            ? tokenizer_bad(t, e, "merges.txt is not UTF-8  -> give a whole file")
            : tokenizer_read_merges(t, &merges, e);
    free(merges.data);
    TRY(st);
    return add_text_end(t, e);
}
