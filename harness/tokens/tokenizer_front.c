/* SPDX-License-Identifier: MIT
 *
 * What stands in front of a text: the post-processor of tokenizer.json, and the files beside it
 * that name the token which begins a text. */
#include "tokenizer_json.h"

/* ---- post_processor ----------------------------------------------------------------------- */

static enum status bad_template(const struct tokenizer *t, const char *why, struct err *e)
{
    return tokenizer_bad(t, e, "post_processor %s: not supported", why);
}

static enum status put_in_front(struct tokenizer *t, const json_t *j, const char *name,
                                struct err *e)
{
    const json_t *const special = json_object_get(json_object_get(j, "special_tokens"), name);
    const json_t *const ids = json_object_get(special, "ids");

    for (size_t k = 0; k < json_array_size(ids); k++) {
        const json_t *const id = json_array_get(ids, k);
        const json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
        if (value < 0 || value >= t->vocab.n || !t->vocab.token[value].text ||
            t->n_prefix == MAX_PREFIX)
            return tokenizer_bad(
                t, e, "post_processor with \"%.40s\" in front: no such token, or too many", name);
        t->prefix[t->n_prefix++] = (int32_t)value;
    }
    return json_array_size(ids) > 0
               ? OK
               : tokenizer_bad(t, e, "post_processor with \"%.40s\", which has no ids", name);
}

static enum status read_template(struct tokenizer *t, const json_t *j, struct err *e)
{
    static const struct key keys[] = {{"type", MAY_TEXT},
                                      {"single", MAY_LIST},
                                      {"pair", MAY_ANY}, /* of two texts */
                                      {"special_tokens", MAY_OBJECT}};
    const json_t *const parts = json_object_get(j, "single");
    bool ends = false; /* behind the text */

    TRY(tokenizer_keys(t, "post_processor", j, keys, ARRAY_LEN(keys), e));
    if (t->n_prefix > 0)
        return bad_template(t, "with two templates", e);
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *const part = json_array_get(parts, i);
        const json_t *const text = json_object_get(part, "Sequence");
        const json_t *const token = json_object_get(part, "SpecialToken");
        if (ends)
            return bad_template(t, "with tokens behind the text", e);
        if (text && strcmp(word_of(text, "id"), "A") == 0)
            ends = true;
        else if (token)
            TRY(put_in_front(t, j, word_of(token, "id"), e));
        else
            return bad_template(t, "with another part than a token and the text", e);
    }
    return ends ? OK : bad_template(t, "without the text", e);
}

enum status tokenizer_read_processor(struct tokenizer *t, const json_t *j, struct err *e)
{
    const char *const type = word_of(j, "type");

    if (strcmp(type, "TemplateProcessing") == 0)
        return read_template(t, j, e);
    if (strcmp(type, "ByteLevel") == 0) /* of places, not of ids */
        return OK;
    return tokenizer_bad(t, e, "post_processor %.40s: not supported", type);
}

/* ---- the files beside it ------------------------------------------------------------------ */

/* A token is its text, or an object that has it. */
static int32_t token_of(const struct tokenizer *t, const json_t *j, const char *key)
{
    const json_t *const value = json_object_get(j, key);
    const char *const text = json_is_object(value) ? word_of(value, "content") : word_of(j, key);

    return *text ? tokenizer_named(t, text) : -1;
}

/* What the files beside tokenizer.json name, programs add to it, and cut out of texts. */
static enum status check_is_added(const struct tokenizer *t, const char *file, const char *text,
                                  struct err *e)
{
    return json_object_get(t->added, text)
               ? OK
               : tokenizer_bad(t, e,
                               "%s names \"%.40s\", which is none of its added tokens  -> files of "
                               "one tokenizer",
                               file, text);
}

static enum status check_named(const struct tokenizer *t, const char *file, const json_t *token,
                               struct err *e)
{
    static const char *const flags[] = {"lstrip", "rstrip", "single_word"};
    const char *const text =
        json_is_object(token) ? word_of(token, "content") : json_string_value(token);

    if (!text || !*text)
        return OK;
    TRY(check_is_added(t, file, text, e));
    const json_t *const added = json_object_get(t->added, text);
    for (size_t i = 0; json_is_object(token) && i < ARRAY_LEN(flags); i++)
        if (flag_of(token, flags[i], false) != flag_of(added, flags[i], false))
            return tokenizer_bad(
                t, e,
                "%s: \"%.40s\" has another %s than in tokenizer.json  -> files of one tokenizer",
                file, text, flags[i]);
    return OK;
}

static enum status check_all_named(const struct tokenizer *t, const char *file, const json_t *named,
                                   struct err *e)
{
    const char *key;
    json_t *one;

    for (size_t i = 0; i < json_array_size(named); i++)
        TRY(check_named(t, file, json_array_get(named, i), e));
    json_object_foreach((json_t *)named, key, one) { TRY(check_named(t, file, one, e)); }
    return OK;
}

/* bos_token, mask_token and all others, and lists of such. */
static enum status check_tokens(const struct tokenizer *t, const char *file, const json_t *j,
                                struct err *e)
{
    static const char *const lists[] = {"additional_special_tokens", "extra_special_tokens",
                                        "added_tokens_decoder"};
    const char *key;
    json_t *value;

    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        TRY(check_all_named(t, file, json_object_get(j, lists[i]), e));
    json_object_foreach((json_t *)j, key, value)
    {
        const bool used = strcmp(key, "bos_token") == 0 || strcmp(key, "eos_token") == 0;
        const json_t *const text =
            json_is_object(value) ? json_object_get(value, "content") : value;
        if (used && !json_is_string(text) && !json_is_null(value))
            return tokenizer_bad(t, e, "%s: %s is not a text  -> a whole file", file, key);
        if (text_ends(key, "_token"))
            TRY(check_named(t, file, value, e));
    }
    return OK;
}

/* added_tokens.json: ids by text. */
static enum status check_added_file(const struct tokenizer *t, struct err *e)
{
    static const char file[] = "added_tokens.json";
    const char *text;
    json_t *j = NULL, *id;
    enum status st = tokenizer_has(t, file) ? tokenizer_object(t, file, &j, e) : OK;

    json_object_foreach(j, text, id)
    {
        if (st == OK)
            st = check_is_added(t, file, text, e);
    }
    json_decref(j);
    return st;
}

/* Does the file name a token that begins a text, or ends one? Then it is t->begin. */
static bool read_names(struct tokenizer *t, const json_t *j)
{
    const bool names = json_object_get(j, "bos_token") || json_object_get(j, "eos_token");

    if (names)
        t->begin = token_of(t, j, "bos_token");
    if (names && t->begin < 0)
        t->begin = token_of(t, j, "eos_token");
    return names;
}

/* A number, or the first of a list: of the first of these keys that names a token. */
static enum status read_ids(struct tokenizer *t, const json_t *config, struct err *e)
{
    static const char *const names[] = {"bos_token_id", "eos_token_id"};
    json_int_t id = -1;

    for (size_t i = 0; id < 0 && i < ARRAY_LEN(names); i++) {
        const json_t *value = json_object_get(config, names[i]);
        if (json_is_array(value) && json_array_size(value) > 0)
            value = json_array_get(value, 0);
        if (value && !json_is_null(value) && !json_is_integer(value))
            return tokenizer_bad(t, e, "config.json: %s is not a token  -> a whole file", names[i]);
        id = json_is_integer(value) ? json_integer_value(value) : -1;
    }
    t->begin = id >= 0 && id < t->vocab.n ? (int32_t)id : -1;
    return OK;
}

static enum status read_switches(struct tokenizer *t, const json_t *j, struct err *e)
{
    static const char *const flags[] = {"add_bos_token", "add_eos_token", "add_prefix_space"};
    const json_t *const bos = json_object_get(j, "add_bos_token");
    const json_t *const space = json_object_get(j, "add_prefix_space");

    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        const json_t *const flag = json_object_get(j, flags[i]);
        if (flag && !json_is_boolean(flag) && !json_is_null(flag))
            return tokenizer_bad(
                t, e, "tokenizer_config.json: %s is not true or false  -> a whole file", flags[i]);
    }
    if (t->bytes && json_is_boolean(space) &&
        json_is_true(space) != (t->cutter[t->n_cutters - 1].blank == BLANK_EACH))
        return tokenizer_bad(t, e,
                             "tokenizer_config.json: add_prefix_space is not that of "
                             "tokenizer.json  -> files of one tokenizer");
    if (flag_of(j, "add_eos_token", false))
        return tokenizer_bad(t, e,
                             "tokenizer_config.json: add_eos_token puts a token behind a text: not "
                             "supported  -> --tokens made elsewhere");
    if (json_is_false(bos) && t->n_prefix > 0) {
        t->n_prefix = 0;
        t->switched = SWITCHED_OFF;
    }
    const int32_t id = token_of(t, j, "bos_token");
    if (json_is_true(bos) && t->n_prefix == 0 && id >= 0) {
        t->prefix[t->n_prefix++] = id;
        t->switched = SWITCHED_ON;
    }
    return OK;
}

/* One of them that there is; *named: it says what begins a text, or ends one. */
static enum status read_beside(struct tokenizer *t, const char *file, bool switches, bool *named,
                               struct err *e)
{
    json_t *j = NULL;
    enum status st = tokenizer_object(t, file, &j, e);

    if (st == OK && switches)
        st = read_switches(t, j, e);
    if (st == OK)
        st = check_tokens(t, file, j, e);
    *named = (st == OK && read_names(t, j)) || *named;
    if (st == OK && t->end < 0)
        t->end = token_of(t, j, "eos_token");
    json_decref(j);
    return st;
}

enum status tokenizer_read_front(struct tokenizer *t, struct err *e)
{
    static const char *const files[] = {"tokenizer_config.json", "special_tokens_map.json"};
    bool named = false;
    json_t *config = NULL;

    TRY(check_added_file(t, e));
    if (t->n_prefix > 0)
        t->begin = t->prefix[0];
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (tokenizer_has(t, files[i]))
            TRY(read_beside(t, files[i], i == 0, &named, e));
    if (named || t->begin >= 0 || !tokenizer_has(t, "config.json"))
        return OK;
    TRY(tokenizer_object(t, "config.json", &config, e));
    const enum status st = read_ids(t, config, e);
    json_decref(config);
    return st;
}
