/* SPDX-License-Identifier: MIT
 *
 * The tokenizer in a GGUF file: its tokens, merges or scores, and a name for the rules by which texts
 * are cut. They become what tokenizer.json would say. */
#include "tokenizer_json.h"

#include "variants/base/gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "tokenizer.ggml."

static const char sentencepiece[] = "llama";

/* Kinds of tokens. All but the normal ones, unused ones and bytes are cut out of texts. */
enum {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN,
    TOKEN_CONTROL,
    TOKEN_OF_USERS,
    TOKEN_UNUSED,
    TOKEN_BYTE,
    TOKEN_KINDS
};

/* By their names in files: what is cut before byte pairs are merged. */
static const struct rules {
    const char *name;
    enum words words;
    bool digits;      /* each stands alone */
    bool composes;    /* texts are normalised (NFC) */
    bool whole_first; /* a word that is a token is not merged */
    bool begins;      /* bos_token_id is in front unless add_bos_token is false */
} rules[] = {
    {"gpt-2", WORDS_GPT2, false, false, false, false},
    {"phi-2", WORDS_GPT2, false, false, false, false},
    {"mpt", WORDS_GPT2, false, true, false, false},
    {"olmo", WORDS_GPT2, false, true, false, false},
    {"smollm", WORDS_GPT2, true, false, false, false},
    {"starcoder", WORDS_GPT2, true, false, false, false},
    {"refact", WORDS_GPT2, true, false, false, false},
    {"llama-bpe", WORDS_GPT4, false, false, true, true},
    {"llama3", WORDS_GPT4, false, false, true, true},
    {"llama-v3", WORDS_GPT4, false, false, true, true},
    {"dbrx", WORDS_GPT4, false, false, false, false},
    {"smaug-bpe", WORDS_GPT4, false, false, false, false},
    {"qwen2", WORDS_QWEN, false, true, false, false},
    {"gpt-4o", WORDS_GPT4O, false, false, false, false},
    {"tekken", WORDS_TEKKEN, false, false, true, true},
};

static const json_t *key_at(const json_t *keys, const char *name)
{
    char key[64];

    snprintf(key, sizeof(key), KEY "%s", name);
    return json_object_get(keys, key);
}

static const struct rules *rules_of(const json_t *keys)
{
    const char *const name = json_string_value(key_at(keys, "pre"));

    for (size_t i = 0; name && i < ARRAY_LEN(rules); i++)
        if (strcmp(rules[i].name, name) == 0)
            return &rules[i];
    return NULL;
}

static json_t *cutters(const struct rules *r)
{
    json_t *const list = json_array();

    if (r->digits)
        json_array_append_new(list,
                              json_pack("{s:s,s:b}", "type", "Digits", "individual_digits", 1));
    const bool split = r->words != WORDS_GPT2;
    if (split)
        json_array_append_new(list, json_pack("{s:s,s:{s:s},s:s,s:b}", "type", "Split", "pattern",
                                              "Regex", words_pattern(r->words), "behavior",
                                              "Isolated", "invert", 0));
    json_array_append_new(list,
                          json_pack("{s:s,s:b,s:b,s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                                    "trim_offsets", 1, "use_regex", !split));
    return json_pack("{s:s,s:o}", "type", "Sequence", "pretokenizers", list);
}

/* A flag of the file. */
static bool flag_at(const json_t *keys, const char *name, bool absent)
{
    const json_t *const value = key_at(keys, name);

    return value ? json_is_true(value) : absent;
}

/* Spaces of tokens that are cut out, which some converters write as in the vocabulary, are those of
 * texts. NULL without memory. */
static char *with_spaces(const char *text)
{
    char *const to = strdup(text), *out = to;

    for (const char *at = text; to && *at; at++) {
        const bool block = strncmp(at, LOWER_BLOCK, strlen(LOWER_BLOCK)) == 0;
        *out++ = *at;
        if (block) {
            out[-1] = ' ';
            at += strlen(LOWER_BLOCK) - 1;
        }
    }
    if (to)
        *out = '\0';
    return to;
}

/* Ids by text, and those that are cut out; false where a token is no text, or stands twice. */
static bool put_token(json_t *vocab, json_t *added, const char *text, json_int_t id,
                      json_int_t kind)
{
    const bool cut = kind == TOKEN_UNKNOWN || kind == TOKEN_CONTROL || kind == TOKEN_OF_USERS;

    if (json_object_get(vocab, text) || json_object_set_new(vocab, text, json_integer(id)) != 0)
        return false;
    return !cut || json_array_append_new(added, json_pack("{s:I,s:s,s:b,s:b,s:b,s:b,s:b}", "id", id,
                                                          "content", text, "single_word", 0,
                                                          "lstrip", 0, "rstrip", 0, "normalized", 0,
                                                          "special", kind != TOKEN_OF_USERS)) == 0;
}

static bool put_tokens(json_t *vocab, json_t *added, const json_t *keys, bool spaces)
{
    const json_t *const tokens = key_at(keys, "tokens"), *const kinds = key_at(keys, "token_type");
    const json_t *token;
    bool whole = json_array_size(tokens) > 0;
    size_t i;

    json_array_foreach(tokens, i, token)
    {
        const json_int_t kind = json_integer_value(json_array_get(kinds, i));
        const char *const text = json_string_value(token);
        char *const spaced = text && spaces && kind == TOKEN_OF_USERS ? with_spaces(text) : NULL;
        whole =
            whole && text && put_token(vocab, added, spaced ? spaced : text, (json_int_t)i, kind);
        free(spaced);
    }
    return whole;
}

/* Which token begins a text, -1 = none; `usual` where no key says so. */
static json_int_t begin_of(const json_t *keys, json_int_t usual)
{
    const json_t *const id = key_at(keys, "bos_token_id");
    const json_int_t begin = id ? json_integer_value(id) : usual;

    return begin >= 0 && (size_t)begin < json_array_size(key_at(keys, "tokens")) ? begin : -1;
}

/* A token in front of each text. */
static json_t *front(const json_t *keys, json_int_t id, bool usual)
{
    const char *const text =
        id < 0 ? NULL : json_string_value(json_array_get(key_at(keys, "tokens"), (size_t)id));

    if (!text || !flag_at(keys, "add_bos_token", usual))
        return json_null();
    return json_pack("{s:s,s:[{s:{s:s,s:i}},{s:{s:s,s:i}}],s:[],s:{s:{s:s,s:[I],s:[s]}}}", "type",
                     "TemplateProcessing", "single", "SpecialToken", "id", text, "type_id", 0,
                     "Sequence", "id", "A", "type_id", 0, "pair", "special_tokens", text, "id",
                     text, "ids", id, "tokens", text);
}

/* Of byte pairs with a list of merges. */
static json_t *of_merges(const json_t *keys, const struct rules *r, json_t *vocab)
{
    return json_pack("{s:o,s:o,s:{s:s,s:b,s:b,s:b},s:{s:s,s:b,s:o,s:O}}", "normalizer",
                     r->composes ? json_pack("{s:s}", "type", "NFC") : json_null(), "pre_tokenizer",
                     cutters(r), "decoder", "type", "ByteLevel", "add_prefix_space", 1,
                     "trim_offsets", 1, "use_regex", 1, "model", "type", "BPE", "ignore_merges",
                     r->whole_first, "vocab", vocab, "merges", key_at(keys, "merges"));
}

/* Of SentencePiece: a space is a character of its own, one stands in front of a text. */
static json_t *of_scores(const json_t *keys, json_t *vocab)
{
    const bool space = flag_at(keys, "add_space_prefix", true);
    json_t *const normal = json_array(), *const back = json_array();

    if (space)
        json_array_append_new(normal,
                              json_pack("{s:s,s:s}", "type", "Prepend", "prepend", LOWER_BLOCK));
    json_array_append_new(normal, json_pack("{s:s,s:{s:s},s:s}", "type", "Replace", "pattern",
                                            "String", " ", "content", LOWER_BLOCK));
    json_array_append_new(back, json_pack("{s:s,s:{s:s},s:s}", "type", "Replace", "pattern",
                                          "String", LOWER_BLOCK, "content", " "));
    json_array_append_new(back, json_pack("{s:s}", "type", "ByteFallback"));
    json_array_append_new(back, json_pack("{s:s}", "type", "Fuse"));
    if (space)
        json_array_append_new(back, json_pack("{s:s,s:s,s:i,s:i}", "type", "Strip", "content", " ",
                                              "start", 1, "stop", 0));
    return json_pack("{s:{s:s,s:o},s:n,s:{s:s,s:o},s:{s:s,s:b,s:o}}", "normalizer", "type",
                     "Sequence", "normalizers", normal, "pre_tokenizer", "decoder", "type",
                     "Sequence", "decoders", back, "model", "type", "BPE", "byte_fallback", 1,
                     "vocab", vocab);
}

/* What tokenizer_read_scores asks for; NULL where a token has none or no kind. */
static json_t *scores_of(const json_t *keys)
{
    const json_t *const kinds = key_at(keys, "token_type"), *const said = key_at(keys, "scores");
    const size_t n = json_array_size(key_at(keys, "tokens"));
    json_t *const scores = json_array();
    bool whole = scores && json_array_size(kinds) == n && json_array_size(said) == n;

    for (size_t i = 0; whole && i < n; i++) {
        const json_int_t kind = json_integer_value(json_array_get(kinds, i));
        json_t *const score = json_array_get(said, i);
        whole = json_is_number(score) && kind >= TOKEN_NORMAL && kind < TOKEN_KINDS &&
                json_array_append_new(scores, kind == TOKEN_NORMAL   ? json_incref(score)
                                              : kind == TOKEN_UNUSED ? json_false()
                                                                     : json_null()) == 0;
    }
    if (whole)
        return scores;
    json_decref(scores);
    return NULL;
}

static enum status unsupported(const struct tokenizer *t, const char *key, const json_t *value,
                               struct err *e)
{
    const char *const text = json_string_value(value);

    return tokenizer_fail(t, E_IO, e,
                          KEY "%s is %.40s: not supported  -> --tokenizer DIR, the folder of its "
                              "tokenizer.json",
                          key,
                          text    ? text
                          : value ? "not as published"
                                  : "missing");
}

/* Is a key set that asks for what is not computed here? */
static enum status check_keys(const struct tokenizer *t, const json_t *keys, struct err *e)
{
    static const char *const off[] = {"add_eos_token", "remove_extra_whitespaces"};

    for (size_t i = 0; i < ARRAY_LEN(off); i++)
        if (flag_at(keys, off[i], false))
            return tokenizer_fail(
                t, E_IO, e, KEY "%s is true: not supported  -> --tokens made elsewhere", off[i]);
    if (json_array_size(key_at(keys, "precompiled_charsmap")) > 0)
        return tokenizer_fail(
            t, E_IO, e, KEY "precompiled_charsmap: not supported  -> --tokens made elsewhere");
    return OK;
}

static enum status make(struct tokenizer *t, const json_t *keys, json_t **all, json_t **scores,
                        struct err *e)
{
    const json_t *const kind = key_at(keys, "model");
    const char *const name = json_is_string(kind) ? json_string_value(kind) : "";
    const bool scored = strcmp(name, sentencepiece) == 0;
    const struct rules *const r = rules_of(keys);

    if (!scored && strcmp(name, "gpt2") != 0)
        return unsupported(t, "model", kind, e);
    if (!scored && !r)
        return unsupported(t, "pre", key_at(keys, "pre"), e);
    const enum status st = check_keys(t, keys, e);
    if (st != OK)
        return st;
    json_t *const vocab = json_object(), *const added = json_array();
    bool whole = put_tokens(vocab, added, keys, scored);
    if (scored)
        whole = (*scores = scores_of(keys)) && whole;
    else
        whole = json_is_array(key_at(keys, "merges")) && whole;
    *all = scored ? of_scores(keys, vocab) : of_merges(keys, r, vocab);
    const json_int_t begin = begin_of(keys, scored ? 1 : -1);
    if (json_object_set_new(*all, "added_tokens", added) != 0 ||
        json_object_set_new(*all, "post_processor", front(keys, begin, scored || r->begins)) != 0 ||
        !whole)
        return tokenizer_fail(t, E_IO, e, KEY "%s are not whole  -> a whole file",
                              scored ? "tokens, scores or token_type" : "tokens or merges");
    t->begin = (int32_t)begin;
    return OK;
}

enum status tokenizer_gguf(struct tokenizer *t, json_t **all, json_t **scores, struct err *e)
{
    struct safetensors file;
    json_t *keys;

    *all = *scores = NULL;
    enum status st = gguf_open(&file, &keys, t->dir, e);
    if (st != OK)
        return st;
    st = make(t, keys, all, scores, e);
    json_decref(keys);
    safetensors_close(&file);
    return st;
}
