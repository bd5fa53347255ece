/* SPDX-License-Identifier: MIT
 *
 * See tokenizer_gguf_keys.h. */
#include "tokenizer_gguf_keys.h"

const json_t *gguf_key(const json_t *keys, const char *name)
{
    char key[64];

    snprintf(key, sizeof(key), KEY "%s", name);
    return json_object_get(keys, key);
}

enum status gguf_key_wrong(const struct tokenizer *t, const char *key, struct err *e,
                           const char *fmt, ...)
{
    char what[sizeof(e->msg)];

    VPRINT(what, sizeof(what), fmt);
    return tokenizer_bad(t, e, KEY "%s %s  -> --tokenizer DIR, the folder of its tokenizer.json",
                         key, what);
}

enum status gguf_token(const struct tokenizer *t, const json_t *keys, const char *name,
                       json_int_t *id, struct err *e)
{
    const json_t *const value = gguf_key(keys, name), *const tokens = gguf_key(keys, "tokens");
    const size_t n = tokens ? json_array_size(tokens) : MAX_TOKENS;

    *id = value ? json_integer_value(value) : -1;
    if (!value)
        return OK;
    if (!json_is_integer(value))
        return gguf_key_wrong(t, name, e, "is not a whole number");
    if (*id < 0 || (size_t)*id >= n)
        return gguf_key_wrong(t, name, e, "is %lld, none of %zu tokens", (long long)*id, n);
    return OK;
}

enum status gguf_flag(const struct tokenizer *t, const json_t *keys, const char *name, bool absent,
                      bool *flag, struct err *e)
{
    const json_t *const value = gguf_key(keys, name);

    *flag = value ? json_is_true(value) : absent;
    return !value || json_is_boolean(value) ? OK
                                            : gguf_key_wrong(t, name, e, "is not true or false");
}

typedef bool is_item_fn(const json_t *item);

static bool is_text(const json_t *item)
{
    return json_is_string(item) && strlen(json_string_value(item)) == json_string_length(item);
}

static bool is_kind(const json_t *item)
{
    return json_is_integer(item) && json_integer_value(item) >= TOKEN_NORMAL &&
           json_integer_value(item) < TOKEN_KINDS;
}

static bool is_score(const json_t *item) { return json_is_number(item); }

/* A list of n items, 0 = of any number; `needed`: the key must be there. */
static enum status check_list(const struct tokenizer *t, const json_t *keys, const char *name,
                              bool needed, size_t n, is_item_fn *is, const char *what,
                              struct err *e)
{
    const json_t *const list = gguf_key(keys, name);
    const json_t *item;
    size_t i;

    if (!list)
        return needed ? gguf_key_wrong(t, name, e, "is missing") : OK;
    if (!json_is_array(list))
        return gguf_key_wrong(t, name, e, "is not a list");
    if (n > 0 && json_array_size(list) != n)
        return gguf_key_wrong(t, name, e, "has %zu items of %zu tokens", json_array_size(list), n);
    json_array_foreach(list, i, item)
    {
        if (!is(item))
            return gguf_key_wrong(t, name, e, "has item %zu, which is not %s", i, what);
    }
    return OK;
}

static enum status check_lists(const struct tokenizer *t, const json_t *keys, bool scored,
                               struct err *e)
{
    const size_t n = json_array_size(gguf_key(keys, "tokens"));

    TRY(check_list(t, keys, "tokens", true, 0, is_text, "a text in UTF-8", e));

    if (n == 0)
        return gguf_key_wrong(t, "tokens", e, "is empty");
    TRY(check_list(t, keys, "token_type", true, n, is_kind, "a kind from 1 to 6", e));
    TRY(check_list(t, keys, "scores", scored, n, is_score, "a number", e));
    return check_list(t, keys, "merges", !scored, 0, is_text, "a text in UTF-8", e);
}

/* All that name a token, whoever asks for it. */
static enum status check_ids(const struct tokenizer *t, const json_t *keys, struct err *e)
{
    const char *key;
    json_t *value;
    json_int_t id;

    json_object_foreach((json_t *)keys, key, value)
    {
        if (text_begins(key, KEY) && text_ends(key, "_token_id"))
            TRY(gguf_token(t, keys, key + strlen(KEY), &id, e));
    }
    return OK;
}

/* Is a key set that asks for what is not computed here? */
static enum status check_off(const struct tokenizer *t, const json_t *keys, struct err *e)
{
    static const char *const off[] = {"add_eos_token", "add_sep_token", "remove_extra_whitespaces"};
    const json_t *const map = gguf_key(keys, "precompiled_charsmap");

    for (size_t i = 0; i < ARRAY_LEN(off); i++) {
        bool on;
        TRY(gguf_flag(t, keys, off[i], false, &on, e));
        if (on)
            return tokenizer_bad(t, e, KEY "%s is true: not supported  -> --tokens made elsewhere",
                                 off[i]);
    }
    if (map && (!json_is_array(map) || json_array_size(map) > 0))
        return tokenizer_bad(t, e,
                             KEY "precompiled_charsmap: not supported  -> --tokens made elsewhere");
    return OK;
}

enum status gguf_keys_check(const struct tokenizer *t, const json_t *keys, bool scored,
                            struct err *e)
{
    TRY(check_off(t, keys, e));

    TRY(check_lists(t, keys, scored, e));
    return check_ids(t, keys, e);
}
