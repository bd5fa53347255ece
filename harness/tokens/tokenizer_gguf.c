/* SPDX-License-Identifier: MIT
 *
 * The tokenizer in a GGUF file: its tokens and merges, and a name for the rules by which texts are
 * cut. They become what tokenizer.json would say. */
#include "tokenizer_json.h"

#include "variants/base/gguf.h"

#include <stdio.h>
#include <string.h>

#define KEY "tokenizer.ggml."

/* Kinds of tokens that are cut out of texts. */
enum { TOKEN_CONTROL = 3, TOKEN_OF_USERS = 4 };

#define LETTERS(digits)                                                                            \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" digits                     \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* By their names in files: what is cut before byte pairs are merged. */
static const struct rules {
    const char *name;
    const char *split; /* a pattern; NULL = that of gpt2 */
    bool digits;       /* each stands alone */
    bool composes;     /* texts are normalised (NFC) */
    bool whole_first;  /* a word that is a token is not merged */
} rules[] = {
    {"gpt-2", NULL, false, false, false},
    {"smollm", NULL, true, false, false},
    {"llama-bpe", LETTERS("{1,3}"), false, false, true},
    {"qwen2", LETTERS(""), false, true, false},
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
    if (r->split)
        json_array_append_new(list,
                              json_pack("{s:s,s:{s:s},s:s,s:b}", "type", "Split", "pattern",
                                        "Regex", r->split, "behavior", "Isolated", "invert", 0));
    json_array_append_new(list,
                          json_pack("{s:s,s:b,s:b,s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                                    "trim_offsets", 1, "use_regex", !r->split));
    return json_pack("{s:s,s:o}", "type", "Sequence", "pretokenizers", list);
}

/* Ids by text; false where a token is no text, or stands twice. */
static bool put_tokens(json_t *vocab, json_t *added, const json_t *keys)
{
    const json_t *const tokens = key_at(keys, "tokens"), *const kinds = key_at(keys, "token_type");
    const json_t *token;
    size_t i;

    json_array_foreach(tokens, i, token)
    {
        const char *const text = json_string_value(token);
        const json_int_t kind = json_integer_value(json_array_get(kinds, i));
        const json_t *const before = text ? json_object_get(vocab, text) : NULL;
        if (!text || before || json_object_set_new(vocab, text, json_integer((json_int_t)i)) != 0)
            return false;
        if (kind == TOKEN_CONTROL || kind == TOKEN_OF_USERS)
            json_array_append_new(added, json_pack("{s:I,s:s,s:b,s:b,s:b,s:b,s:b}", "id",
                                                   (json_int_t)i, "content", text, "single_word", 0,
                                                   "lstrip", 0, "rstrip", 0, "normalized", 0,
                                                   "special", kind == TOKEN_CONTROL));
    }
    return json_array_size(tokens) > 0;
}

/* A token in front of each text. */
static json_t *front(const json_t *keys)
{
    const json_int_t id = json_integer_value(key_at(keys, "bos_token_id"));
    const char *const text = json_string_value(json_array_get(key_at(keys, "tokens"), (size_t)id));

    if (!text || !json_is_true(key_at(keys, "add_bos_token")))
        return json_null();
    return json_pack("{s:s,s:[{s:{s:s,s:i}},{s:{s:s,s:i}}],s:[],s:{s:{s:s,s:[I],s:[s]}}}", "type",
                     "TemplateProcessing", "single", "SpecialToken", "id", text, "type_id", 0,
                     "Sequence", "id", "A", "type_id", 0, "pair", "special_tokens", text, "id",
                     text, "ids", id, "tokens", text);
}

static enum status make(const struct tokenizer *t, const json_t *keys, json_t **all, struct err *e)
{
    const char *const kind = json_string_value(key_at(keys, "model"));
    const char *const pre = json_string_value(key_at(keys, "pre"));
    const struct rules *const r = rules_of(keys);

    if (!kind || strcmp(kind, "gpt2") != 0)
        return tokenizer_fail(t, E_IO, e,
                              KEY "model is %.40s: not supported  -> --tokenizer DIR, the folder "
                                  "of its tokenizer.json",
                              kind ? kind : "missing");
    if (!r)
        return tokenizer_fail(t, E_IO, e,
                              KEY "pre is %.40s: not supported  -> --tokenizer DIR, the folder of "
                                  "its tokenizer.json",
                              pre ? pre : "missing");
    json_t *const vocab = json_object(), *const added = json_array();
    const json_t *const merges = key_at(keys, "merges");
    const bool whole = put_tokens(vocab, added, keys) && json_is_array(merges);
    *all = json_pack("{s:s,s:o,s:o,s:o,s:o,s:{s:s,s:b,s:b,s:b},s:{s:s,s:b,s:o,s:O}}", "version",
                     "1.0", "added_tokens", added, "normalizer",
                     r->composes ? json_pack("{s:s}", "type", "NFC") : json_null(), "pre_tokenizer",
                     cutters(r), "post_processor", front(keys), "decoder", "type", "ByteLevel",
                     "add_prefix_space", 1, "trim_offsets", 1, "use_regex", 1, "model", "type",
                     "BPE", "ignore_merges", r->whole_first, "vocab", vocab, "merges", merges);
    if (!*all || !whole)
        return tokenizer_fail(t, E_IO, e, KEY "tokens or merges are not whole  -> a whole file");
    return OK;
}

enum status tokenizer_gguf(const struct tokenizer *t, json_t **all, struct err *e)
{
    struct safetensors file;
    json_t *keys;

    *all = NULL;
    enum status st = gguf_open(&file, &keys, t->dir, e);
    if (st != OK)
        return st;
    st = make(t, keys, all, e);
    json_decref(keys);
    safetensors_close(&file);
    return st;
}
