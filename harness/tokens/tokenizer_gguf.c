/* SPDX-License-Identifier: MIT
 *
 * The tokenizer in a GGUF file: its tokens, merges or scores, and a name for the rules by which texts
 * are cut. They become what tokenizer.json would say. */
#include "tokenizer_gguf_keys.h"

#include "harness/util/text.h"
#include "variants/base/gguf.h"

static const char sentencepiece[] = "llama";

/* By their names in files: what is cut before byte pairs are merged. */
static const struct rules {
    const char *name;
    const char *words;
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
    {"llama-bpe", WORDS_LLAMA3, false, false, true, true},
    {"llama3", WORDS_LLAMA3, false, false, true, true},
    {"llama-v3", WORDS_LLAMA3, false, false, true, true},
    {"dbrx", WORDS_LLAMA3, false, false, false, false},
    {"smaug-bpe", WORDS_LLAMA3, false, false, false, false},
    {"qwen2", WORDS_QWEN, false, true, false, false},
    {"gpt-4o", WORDS_GPT_4O, false, false, false, false},
    {"tekken", WORDS_NEMO, false, false, true, true},
};

static const struct rules *rules_of(const json_t *keys)
{
    const char *const name = json_string_value(gguf_key(keys, "pre"));

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
    const bool split = strcmp(r->words, WORDS_GPT2) != 0;
    if (split)
        json_array_append_new(list,
                              json_pack("{s:s,s:{s:s},s:s,s:b}", "type", "Split", "pattern",
                                        "Regex", r->words, "behavior", "Isolated", "invert", 0));
    json_array_append_new(list,
                          json_pack("{s:s,s:b,s:b,s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                                    "trim_offsets", 1, "use_regex", !split));
    return json_pack("{s:s,s:o}", "type", "Sequence", "pretokenizers", list);
}

/* Do tokens that are cut out take the white space behind them? No key says so: as in llama.cpp, those
 * of models that are called Phi-3 do. */
static bool takes_white(const json_t *keys)
{
    const char *const name = json_string_value(json_object_get(keys, "general.name"));

    return name && (strcasestr(name, "phi-3") || strcasestr(name, "phi3"));
}

/* But for these. */
static bool leaves_white(const char *text)
{
    return strcmp(text, "<unk>") == 0 || strcmp(text, "<s>") == 0 ||
           strcmp(text, "<|endoftext|>") == 0;
}

/* Ids by text, and those that are cut out; `rstrip`: these take white space. */
static enum status put_token(const struct tokenizer *t, json_t *vocab, json_t *added,
                             const char *text, json_int_t id, json_int_t kind, bool rstrip,
                             struct err *e)
{
    const bool cut = kind == TOKEN_UNKNOWN || kind == TOKEN_CONTROL || kind == TOKEN_OF_USERS;
    const json_t *const other = json_object_get(vocab, text);

    if (other)
        return gguf_key_wrong(t, "tokens", e, "has \"%.40s\" twice, as %lld and %lld", text,
                              (long long)json_integer_value(other), (long long)id);
    json_object_set_new(vocab, text, json_integer(id));
    if (cut)
        json_array_append_new(added, json_pack("{s:I,s:s,s:b,s:b,s:b,s:b,s:b}", "id", id, "content",
                                               text, "single_word", 0, "lstrip", 0, "rstrip",
                                               rstrip && !leaves_white(text), "normalized", 0,
                                               "special", kind != TOKEN_OF_USERS));
    return OK;
}

static enum status put_tokens(const struct tokenizer *t, json_t *vocab, json_t *added,
                              const json_t *keys, bool spaces, struct err *e)
{
    const json_t *const tokens = gguf_key(keys, "tokens"), *const kinds =
                                                               gguf_key(keys, "token_type");
    const bool rstrip = takes_white(keys);

    for (size_t i = 0; i < json_array_size(tokens); i++) {
        const json_int_t kind = json_integer_value(json_array_get(kinds, i));
        const char *const text = json_string_value(json_array_get(tokens, i));
        struct bytes spaced = {0};
        if (spaces && kind == TOKEN_OF_USERS) /* some converters write them as in the vocabulary */
            TRY(bytes_replace(&spaced, text, strlen(text), LOWER_BLOCK, " ", e));
        const enum status st = put_token(t, vocab, added, spaced.data ? spaced.data : text,
                                         (json_int_t)i, kind, rstrip, e);
        free(spaced.data);
        TRY(st);
    }
    return OK;
}

/* Which token begins a text, -1 = none; it stands in front if `*puts`. SentencePiece's is 1 where no
 * key says so. Merges have none then: what programs put there is a token of another vocabulary. */
static enum status find_begin(const struct tokenizer *t, const json_t *keys, const struct rules *r,
                              json_int_t *begin, bool *puts, struct err *e)
{
    TRY(gguf_token(t, keys, "bos_token_id", begin, e));

    TRY(gguf_flag(t, keys, "add_bos_token", !r || r->begins, puts, e));
    if (!r && *begin < 0)
        *begin = 1;
    if (*puts && *begin < 0)
        return gguf_key_wrong(t, "bos_token_id", e, "is missing, and texts begin with it");
    return OK;
}

/* A token in front of each text. */
static json_t *front(const json_t *keys, json_int_t id)
{
    const char *const text =
        json_string_value(json_array_get(gguf_key(keys, "tokens"), (size_t)id));

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
                     r->whole_first, "vocab", vocab, "merges", gguf_key(keys, "merges"));
}

/* Of SentencePiece: a space is a character of its own, one stands in front of a text. */
static json_t *of_scores(json_t *vocab, bool space)
{
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

/* What tokenizer_read_scores asks for. */
static json_t *scores_of(const json_t *keys)
{
    const json_t *const kinds = gguf_key(keys, "token_type"), *const said =
                                                                  gguf_key(keys, "scores");
    json_t *const scores = json_array();

    for (size_t i = 0; i < json_array_size(said); i++) {
        const json_int_t kind = json_integer_value(json_array_get(kinds, i));
        json_array_append_new(scores, kind == TOKEN_NORMAL   ? json_incref(json_array_get(said, i))
                                      : kind == TOKEN_UNUSED ? json_false()
                                                             : json_null());
    }
    return scores;
}

static enum status unsupported(const struct tokenizer *t, const char *key, const json_t *value,
                               struct err *e)
{
    const char *const text = json_string_value(value);

    return !value  ? gguf_key_wrong(t, key, e, "is missing")
           : !text ? gguf_key_wrong(t, key, e, "is not a text")
                   : gguf_key_wrong(t, key, e, "is %.40s: not supported", text);
}

static enum status make(struct tokenizer *t, const json_t *keys, json_t **all, json_t **scores,
                        struct err *e)
{
    const json_t *const kind = gguf_key(keys, "model");
    const char *const name = json_is_string(kind) ? json_string_value(kind) : "";
    const bool scored = strcmp(name, sentencepiece) == 0;
    const struct rules *const r = scored ? NULL : rules_of(keys);
    json_int_t begin;
    bool puts, space;

    if (!scored && strcmp(name, "gpt2") != 0)
        return unsupported(t, "model", kind, e);
    if (!scored && !r)
        return unsupported(t, "pre", gguf_key(keys, "pre"), e);
    TRY(gguf_keys_check(t, keys, scored, e));
    TRY(find_begin(t, keys, r, &begin, &puts, e));
    TRY(gguf_flag(t, keys, "add_space_prefix", scored, &space, e));
    if (space && !scored)
        return gguf_key_wrong(t, "add_space_prefix", e, "is true with merges: not supported");
    json_t *const vocab = json_object(), *const added = json_array();
    const enum status st = put_tokens(t, vocab, added, keys, scored, e);
    *scores = scored ? scores_of(keys) : NULL;
    *all = scored ? of_scores(vocab, space) : of_merges(keys, r, vocab);
    json_object_set_new(*all, "added_tokens", added);
    json_object_set_new(*all, "post_processor", puts ? front(keys, begin) : json_null());
    t->begin = (int32_t)begin;
    return st;
}

enum status tokenizer_gguf(struct tokenizer *t, json_t **all, json_t **scores, struct err *e)
{
    struct safetensors file;
    json_t *keys;

    *all = *scores = NULL;
    TRY(gguf_open(&file, &keys, t->dir, e));
    const enum status st = make(t, keys, all, scores, e);
    json_decref(keys);
    safetensors_close(&file);
    return st;
}
